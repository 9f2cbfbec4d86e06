"""How a command tells what it does: text, one JSON object per line, or a live list of stages on a terminal."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.table import Table

OURS = ("jobs", "pipelines", "schemas", "udfs")
_FACTS = ("stage", "state", "seconds", "rows")


class JsonLines(logging.Formatter):
    """One JSON object per record, with the facts of a stage as fields of their own."""

    def format(self, record: logging.LogRecord) -> str:
        at = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")
        told: dict[str, Any] = {"time": at, "level": record.levelname, "logger": record.name}
        told["message"] = record.getMessage()
        told |= {name: getattr(record, name) for name in _FACTS if hasattr(record, name)}
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


def configure(arguments: Sequence[str], *, debug: bool) -> None:
    """Set up logging as the command line asks, before any command runs."""
    handler = logging.StreamHandler(sys.stderr)
    if _wants_json(arguments):
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    # One line per stage, when it has ended; that it began is for those who watch, and for --debug.
    handler.addFilter(lambda record: debug or getattr(record, "state", None) != "begin")
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for package in OURS:
        logging.getLogger(package).setLevel(logging.DEBUG if debug else logging.INFO)


def _wants_json(arguments: Sequence[str]) -> bool:
    return "--log=json" in arguments or ("--log", "json") in itertools.pairwise(arguments)


class StageList(logging.Handler):
    """A live list of stages: what ended, what runs, and how many of Spark's tasks are done."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.stages: dict[str, dict[str, Any]] = {}
        self.spark: SparkSession | None = None

    def emit(self, record: logging.LogRecord) -> None:
        name = getattr(record, "stage", None)
        if name is not None:
            facts = {fact: getattr(record, fact, None) for fact in _FACTS}
            self.stages[name] = {"began": time.monotonic(), **self.stages.get(name, {}), **facts}

    def tasks(self) -> tuple[int, int]:
        """Tasks done and tasks in all, of the Spark stages that run now."""
        if self.spark is None or not hasattr(self.spark, "_jsparkSession"):  # Spark Connect tells nothing
            return 0, 0
        tracker = self.spark.sparkContext.statusTracker()
        infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [info for info in infos if info is not None]
        return sum(info.numCompletedTasks for info in known), sum(info.numTasks for info in known)

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        for name, stage in self.stages.items():
            if stage["state"] == "end":
                rows = f"{stage['rows']:,} rows" if stage["rows"] else ""
                table.add_row("[green]✓[/]", name, f"{stage['seconds']:.1f} s", rows)
                continue
            done, total = self.tasks()
            bar = "█" * (20 * done // total) + "░" * (20 - 20 * done // total) if total else ""
            passed = f"{time.monotonic() - stage['began']:.0f} s"
            table.add_row("[yellow]…[/]", name, passed, f"{bar} {done}/{total} tasks" if total else "")
        return table


@contextmanager
def watched(log: str) -> Iterator[StageList]:
    """Show stages live where someone looks at a terminal; elsewhere the log has a line for each."""
    shown = StageList()
    if log == "json" or not sys.stderr.isatty():
        yield shown
        return
    from rich.console import Console
    from rich.live import Live

    loud = logging.getLogger("pipelines.stages")
    loud.addHandler(shown)
    loud.propagate = loud.isEnabledFor(logging.DEBUG)  # the list says it already
    plain = [handler for handler in logging.getLogger().handlers if isinstance(handler, logging.StreamHandler)]
    try:
        with Live(shown, console=Console(stderr=True), refresh_per_second=4):
            for handler in plain:
                handler.setStream(sys.stderr)  # the live one, which keeps lines above the list
            yield shown
    finally:
        for handler in plain:
            handler.setStream(sys.stderr)
        loud.removeHandler(shown)
        loud.propagate = True
