"""Run a pipeline for one date after another: committed work without Spark, all other dates in one session."""

from __future__ import annotations

import datetime as dt
import importlib
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from pipelines.plan import look_ahead

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.support.logs import StageList
    from pipelines.config.load import LoadedConfig
    from pipelines.plan import LocalInputs, Outcome, Work

logger = logging.getLogger(__name__)


class DateRunner:
    """The pipeline `pipelines.NAME` and its Spark session, which starts with the first date that needs it."""

    def __init__(
        self,
        name: str,
        loaded: LoadedConfig,
        work: Work,
        dates: Sequence[dt.date],
        *,
        force: bool,
        log: str,
        on_start: Callable[[], None] | None = None,
    ) -> None:
        self.name, self.loaded, self.work, self.dates = name, loaded, work, dates
        self.force, self.log, self.on_start = force, log, on_start
        self._stack = ExitStack()
        self._session: tuple[SparkSession, StageList] | None = None

    def __enter__(self) -> DateRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def run(self, date: dt.date) -> Outcome:
        """Run the pipeline for a date, or return the committed run of the same work."""
        with self.loaded.locate_errors():
            local = look_ahead(self.work, date)
        if local is not None and local.committed is not None and not self.force:
            return local.committed
        from jobs.support.workload import log_workload

        spark, shown = self._session = self._session or self._start(local)
        if len(self.dates) > 1:
            shown.begin_date(date)
            logger.info("date=%s, %d of %d", date, self.dates.index(date) + 1, len(self.dates))
        pipeline = getattr(importlib.import_module(f"pipelines.{self.name}"), self.name)
        listings = None if local is None else local.listings
        with self.loaded.locate_errors():
            outcome: Outcome = pipeline(spark, self.loaded.config, date, force=self.force, listings=listings)
        log_workload(spark)
        return outcome

    def _start(self, local: LocalInputs | None) -> tuple[SparkSession, StageList]:
        """Start Spark; the pipeline is imported while Java starts. A session of many dates fits data of any size."""
        from jobs.support.logs import show_progress
        from jobs.support.session import list_imports, open_session

        first, last = self.dates[0], self.dates[-1]
        title = f"assay {self.name} {first}" + ("" if first == last else f" to {last}")
        alone = local if len(self.dates) == 1 else None
        size, spark_bytes = (None, None) if alone is None else (alone.bytes, alone.spark_bytes)
        shown = self._stack.enter_context(show_progress(self.log))
        config = self.loaded.config
        imports = list_imports(f"pipelines.{self.name}", config)
        spark = self._stack.enter_context(
            open_session(config.spark, title, input_bytes=size, spark_bytes=spark_bytes, imports=imports)
        )
        shown.attach(spark)
        if self.on_start is not None:
            self.on_start()
        return spark, shown
