"""Logging and progress of a command: text, one JSON object per line, or a live list of stages on a terminal."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jobs.support.terminal import make_safe, open_console
from schemas.printable import escape_line, escape_unprintable, format_count
from schemas.redact import redact_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.table import Table

PACKAGES = ("assay", "jobs", "pipelines", "schemas", "udfs")
_FACTS = ("stage", "state", "seconds", "rows")
START = "start Spark"  # the first line of the list

logger = logging.getLogger(__name__)


class SafeLines(logging.Formatter):
    """One line per record, of ours and of libraries, without secrets and control characters; then the stack trace."""

    def format(self, record: logging.LogRecord) -> str:
        safe = logging.makeLogRecord(record.__dict__ | {"msg": escape_line(record.getMessage()), "args": None})
        return make_safe(super().format(safe))


class JsonLines(logging.Formatter):
    """One JSON object per record, with the facts of a stage as separate fields; as safe as lines of text."""

    def format(self, record: logging.LogRecord) -> str:
        at = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")
        entry: dict[str, Any] = {"time": at, "level": record.levelname, "logger": record.name}
        entry["message"] = redact_text(record.getMessage())
        entry |= {name: getattr(record, name) for name in _FACTS if hasattr(record, name)}
        if record.exc_info:
            entry["trace"] = redact_text(self.formatException(record.exc_info))
        return escape_unprintable(json.dumps(entry, ensure_ascii=False))


def configure_logging(arguments: Sequence[str], *, debug: bool) -> None:
    """Set up logging from the command line, before any command runs."""
    handler = logging.StreamHandler(sys.stderr)
    if _is_json(arguments):
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(SafeLines("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    if not debug:
        handler.addFilter(_drop_trace)
        handler.addFilter(_drop_repeats())
    # One line per stage, at its end; its begin is only for the live list and --debug.
    handler.addFilter(lambda record: debug or getattr(record, "state", None) != "begin")
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    # requests hides it itself, but not while another thread changes the filters of warnings.
    warnings.filterwarnings("ignore", message="SOCKS support in urllib3")
    for package in PACKAGES:
        logging.getLogger(package).setLevel(logging.DEBUG if debug else logging.INFO)


def _drop_trace(record: logging.LogRecord) -> bool:
    """Drop the stack trace of a record; libraries add one to what is no more than a warning."""
    record.exc_info = record.exc_text = record.stack_info = None
    return True


def _drop_repeats() -> Callable[[logging.LogRecord], bool]:
    """Drop a warning that was logged before: one source is read for several tables."""
    logged: set[tuple[str, str]] = set()

    def is_new(record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        before = len(logged)
        logged.add((record.name, record.getMessage()))
        return len(logged) > before

    return is_new


def _is_json(arguments: Sequence[str]) -> bool:
    return "--log=json" in arguments or ("--log", "json") in itertools.pairwise(arguments)


class StageList(logging.Handler):
    """A live list of the stages that ended and the one that runs, with the progress of its Spark tasks."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.stages: dict[str, dict[str, Any]] = {}
        self.title: str | None = None
        self.spark: SparkSession | None = None

    def begin_start(self) -> None:
        """Show that Spark starts, which takes seconds."""
        self.stages[START] = {"start": time.monotonic(), "state": "begin"}

    def attach(self, spark: SparkSession) -> None:
        """Show the tasks of this session, which has started."""
        self.spark = spark
        if START in self.stages:
            seconds = time.monotonic() - self.stages[START]["start"]
            self.stages[START] |= {"state": "end", "seconds": seconds, "rows": None}

    def begin_date(self, date: dt.date) -> None:
        """Begin the list again for one of several dates."""
        self.stages, self.title = {}, str(date)

    def emit(self, record: logging.LogRecord) -> None:
        name = getattr(record, "stage", None)
        if name is not None:
            facts = {fact: getattr(record, fact, None) for fact in _FACTS}
            self.stages[name] = {"start": time.monotonic(), **self.stages.get(name, {}), **facts}

    def tasks(self) -> tuple[int, int]:
        """Return the finished and the total number of tasks of the running Spark stages."""
        if self.spark is None or not hasattr(self.spark, "_jsparkSession"):  # not available with Spark Connect
            return 0, 0
        tracker = self.spark.sparkContext.statusTracker()
        infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        running = [info for info in infos if info is not None]
        return sum(info.numCompletedTasks for info in running), sum(info.numTasks for info in running)

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        table.title, table.title_justify = self.title, "left"
        for name, stage in self.stages.items():
            if stage["state"] == "end":
                rows = "" if stage["rows"] is None else format_count(stage["rows"], "row")
                table.add_row("[green]✓[/]", name, f"{stage['seconds']:.1f} s", rows)
                continue
            done, total = self.tasks()
            bar = "█" * (20 * done // total) + "░" * (20 - 20 * done // total) if total else ""
            passed = f"{time.monotonic() - stage['start']:.0f} s"
            table.add_row("[yellow]…[/]", name, passed, f"{bar} {done}/{total} tasks" if total else "")
        return table


@contextmanager
def show_progress(log: str) -> Iterator[StageList]:
    """Show stages live on a terminal; elsewhere the log has one line per stage."""
    stages = StageList()
    if log == "json" or not sys.stderr.isatty():
        logger.info("starting Spark …")
        yield stages
        return
    stages.begin_start()
    from rich.live import Live

    stage_logger = logging.getLogger("pipelines.stages")
    stage_logger.addHandler(stages)
    stage_logger.propagate = stage_logger.isEnabledFor(logging.DEBUG)  # the list shows it already
    handlers = [handler for handler in logging.getLogger().handlers if isinstance(handler, logging.StreamHandler)]
    try:
        with Live(stages, console=open_console(stderr=True), refresh_per_second=4):
            for handler in handlers:
                handler.setStream(sys.stderr)  # rich's, which prints lines above the list
            yield stages
    finally:
        for handler in handlers:
            handler.setStream(sys.stderr)
        stage_logger.removeHandler(stages)
        stage_logger.propagate = True
