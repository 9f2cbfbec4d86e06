"""Publish a run: write its tables where nothing refers to them yet, then commit with one file."""

from __future__ import annotations

import datetime as dt
import logging
import secrets
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipelines.complaints import complaint, unreadable
from pipelines.hold import held_in
from pipelines.runs import Manifest, TableRecord, manifest_name
from pipelines.storage import Storage
from schemas.errors import PublishError

logger = logging.getLogger(__name__)


class Attempt:
    """One attempt at a run. Leaving it without a commit removes what it wrote.

    Each attempt writes to folders of its own, so that two at once, or one after a crash, never meet.
    """

    def __init__(self, storage: Storage, date: dt.date, key: str) -> None:
        self.storage = storage
        self.dt = date.isoformat()
        self.key = key
        # The dash keeps readers that guess types of partition values from taking it for a number.
        self.run = f"{key}-{secrets.token_hex(3)}"
        self.tables: dict[str, TableRecord] = {}
        self._held = f"_held/dt={self.dt}/run={self.run}"  # spelled as tables are, so that vacuum knows it
        self._keep = held_in(storage.path(self._held))
        self._committed = False

    def __enter__(self) -> Attempt:
        probe = f"_probe/{self.run}"
        self.storage.put(probe, "")  # a warehouse that cannot be written to is found before the work, not after
        self.storage.delete(probe)
        return self

    def hold(self, table: DataFrame) -> DataFrame:
        """Compute a table once, for all that is made from it; it is gone when the attempt ends."""
        try:
            return self._keep(table)
        except Exception as error:
            if unreadable(error):
                raise
            raise PublishError(f"cannot write: {complaint(error)[1]}", where=self.storage.path(self._held)) from error

    def write(self, name: str, table: DataFrame) -> DataFrame:
        """Write this run's part of a table; what is returned reads what was written."""
        place = f"{name}/dt={self.dt}/run={self.run}"
        self.tables[name] = TableRecord(path=place, rows=0)  # known before it is written, so that it is cleaned up
        spark: SparkSession = table.sparkSession
        try:
            table.write.parquet(self.storage.path(place))
            written = spark.read.parquet(self.storage.path(place))
            self.tables[name] = TableRecord(path=place, rows=written.count())
        except Exception as error:
            if unreadable(error):
                raise
            raise PublishError(f"cannot write {name}: {complaint(error)[1]}", where=self.storage.path(place)) from error
        return written

    def commit(self, **facts: Any) -> Manifest:
        """Make the run exist, in one atomic write."""
        manifest = Manifest(
            run=self.run,
            key=self.key,
            dt=self.dt,
            status="committed",
            committed_at=dt.datetime.now(dt.UTC).isoformat(timespec="microseconds"),
            tables=self.tables,
            **facts,
        )
        self.storage.put(manifest_name(self.dt, self.run), manifest.model_dump_json())
        self._committed = True
        return manifest

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        written = [] if self._committed else [record.path for record in self.tables.values()]
        for place in (self._held, *written):
            try:
                self.storage.delete(place)
            except OSError as failed:
                logger.warning("could not remove %s (%s); `assay vacuum` will", place, failed)
