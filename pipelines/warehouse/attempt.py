"""Publish a run: write its tables to paths that no manifest names yet, then commit with one file."""

from __future__ import annotations

import datetime as dt
import logging
import secrets
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pipelines.warehouse.checkpoint import Checkpointer, build_checkpointer, keep_in_memory
from pipelines.warehouse.leftovers import attempt_path, claim_attempt, remove_attempt, remove_leftovers
from pipelines.warehouse.listeners import has_listeners
from pipelines.warehouse.literal_paths import open_reader
from pipelines.warehouse.runs import COMMITTED, REFUSED, Manifest, TableRecord, manifest_path, stamp_commit, table_path
from pipelines.warehouse.storage import Storage
from schemas.errors import AssayError, PublishError, UnknownOutcomeError
from schemas.outputs import OUTPUTS
from schemas.redact import redact_texts
from schemas.spark_errors import describe_spark_error, raise_cause
from schemas.table import Table
from udfs.spark.worker_table import WorkerTable

logger = logging.getLogger(__name__)


class Attempt:
    """One attempt at a run; leaving the context without a commit removes what was written.

    The checkpoints of a `small` one stay in memory.

    Each attempt writes to a folder of its own, `_attempts/RUN`, so concurrent attempts and leftovers of a crash never
    collide. Where folders can be renamed, tables move to their final place just before the commit, so readers that list
    a table's folder never see an unfinished file.
    """

    def __init__(self, storage: Storage, date: dt.date, key: str, *, small: bool = False) -> None:
        self.storage = storage
        self.dt = date.isoformat()
        self.key = key
        # The dash keeps readers that infer types of partition values from parsing it as a number.
        self.run = f"{key}-{secrets.token_hex(3)}"
        self.tables: dict[str, TableRecord] = {}
        self._schemas: dict[str, StructType] = {}  # of tables that Spark can read back; without it, Spark starts a job
        self._folder = attempt_path(self.run)
        files = build_checkpointer(storage.path(self._folder, "checkpoints"))
        self._checkpoint: Checkpointer = keep_in_memory if small else files
        bundles = f"{self._folder}/bundles"
        # A folder for what workers leave for each other; None where Spark moves it.
        self.bundle_folder = storage.local(bundles) if storage.is_local and not small else None

    def __enter__(self) -> Attempt:
        remove_leftovers(self.storage)
        try:  # fails before the work, not after, if the warehouse is not writable
            claim_attempt(self.storage, self.dt, self.run)
        except AssayError:
            self._discard()
            raise
        return self

    def checkpoint(self, table: DataFrame, partition_by: str | None = None) -> DataFrame:
        """Compute a table once, for several results to be computed from it until the attempt ends."""
        try:
            return self._checkpoint(table, partition_by)
        except Exception as error:
            raise_cause(error)
            raise PublishError(
                f"cannot write: {describe_spark_error(error)[1]}", where=self.storage.path(self._folder)
            ) from error

    def write(self, name: str, table: DataFrame | WorkerTable) -> DataFrame:
        """Write this run's part of a table and return it as written, to be read until the run is committed.

        Into a folder that all workers have, they write a table of theirs themselves, unless somebody listens to Spark.
        """
        # Recorded first, so that a failed write is removed.
        self.tables[name] = TableRecord(path=table_path(name, self.dt, self.run), rows=0)
        place = self._locate(name)
        try:
            rows = table.rows() if isinstance(table, WorkerTable) else table
            if isinstance(table, WorkerTable) and self.storage.is_local and not has_listeners(rows.sparkSession):
                table.write(self.storage.local(place))
            else:
                rows.write.parquet(self.storage.path(place))
            self._schemas[name] = rows.schema
            written = self._read(rows.sparkSession, name)
            files, size = self.storage.measure(place, suffix=".parquet")
            # Rows by the footers of the files: a Spark job per table would take longer than writing a small one.
            fields = {"rows": self.storage.dataset(place).count_rows(), "files": files, "bytes": size}
            self.tables[name] = self.tables[name].model_copy(update=fields)
        except Exception as error:
            raise_cause(error)
            raise PublishError(
                f"cannot write {name}: {describe_spark_error(error)[1]}", where=self.storage.path(place)
            ) from error
        return written

    def write_rows(self, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write this run's part of a table from a few rows of the driver; a Spark job would take longer."""
        values = [{name: _replace_surrogates(row[name]) for name in table.names} for row in rows]
        self.write_arrow(table.name, pa.Table.from_pylist(values, schema=table.arrow_schema()))
        self._schemas[table.name] = table.struct()

    def write_arrow(self, name: str, table: pa.Table) -> None:
        """Write this run's part of a table that was computed in memory."""
        self.tables[name] = TableRecord(path=table_path(name, self.dt, self.run), rows=table.num_rows)
        place = self._locate(name)
        try:
            self.storage.write_parquet(place, table)
            files, size = self.storage.measure(place, suffix=".parquet")
        except (OSError, pa.ArrowException) as error:
            raise PublishError(f"cannot write {name}: {error}", where=self.storage.path(place)) from error
        self.tables[name] = self.tables[name].model_copy(update={"files": files, "bytes": size})

    def copy(self, name: str, source: Storage, record: TableRecord) -> None:
        """Take a table over from a run of another warehouse."""
        self.tables[name] = record.model_copy(update={"path": table_path(name, self.dt, self.run)})
        place = self._locate(name)
        try:
            self.storage.copy(place, source, record.path)
        except (OSError, pa.ArrowException) as error:
            raise PublishError(f"cannot write {name}: {error}", where=self.storage.path(place)) from error

    def read_tables(self, spark: SparkSession) -> dict[str, DataFrame]:
        """Return the tables written so far, as written."""
        return {name: self._read(spark, name) for name in self._schemas if name in self.tables}

    def list_files(self, name: str) -> list[str]:
        """The paths of the files of a table until the commit, where all workers can open them; none elsewhere."""
        if not self.storage.is_local:
            return []
        return [self.storage.local(file) for file in self.storage.list(self._locate(name), suffix=".parquet")]

    def _read(self, spark: SparkSession, name: str) -> DataFrame:
        return open_reader(spark).schema(self._schemas[name]).parquet(self.storage.path(self._locate(name)))

    def _locate(self, name: str) -> str:
        """Where a table is until the commit."""
        return f"{self._folder}/tables/{name}" if self.storage.renames else self.tables[name].path

    def commit(self, **facts: Any) -> Manifest:
        """Publish the run in one atomic write."""
        return self._record(COMMITTED, facts)

    def refuse(self, kept: str, **facts: Any) -> Manifest:
        """Record a run that failed its quality checks: it publishes only the table `kept` and is never live."""
        for name in [name for name in self.tables if name != kept]:
            self.storage.delete(self._locate(name))
            del self.tables[name]
        return self._record(REFUSED, facts)

    def _record(self, status: str, facts: Mapping[str, Any]) -> Manifest:
        # In the order of their contracts: steps that run at once write them in any order.
        self.tables = {name: self.tables[name] for name in sorted(self.tables, key=_find_place)}
        try:
            committed_at = stamp_commit(self.storage, self.dt)
            for name, record in self.tables.items() if self.storage.renames else ():
                self.storage.move(self._locate(name), record.path)
        except OSError as error:
            raise PublishError(f"cannot publish the tables: {error}", where=self.storage.uri) from error
        manifest = Manifest(
            run=self.run,
            key=self.key,
            dt=self.dt,
            status=status,
            committed_at=committed_at,
            tables=self.tables,
            **redact_texts(facts),
        )
        self.storage.create(manifest_path(self.dt, self.run), manifest.model_dump_json())
        return manifest

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, UnknownOutcomeError):  # the run may be committed: `assay vacuum` removes it if it is not
            return
        self._discard()

    def _discard(self) -> None:
        """Remove what the attempt wrote outside of a committed run."""
        try:
            remove_attempt(self.storage, self.dt, self.run)
        except (OSError, AssayError) as failure:
            logger.warning("could not remove %s (%s); the next run or `assay vacuum` will", self._folder, failure)


def _find_place(name: str) -> tuple[int, str]:
    """The place of a table among the contracts; others, of other versions, come last."""
    names = list(OUTPUTS)
    return (names.index(name) if name in names else len(names)), name


def _replace_surrogates(value: Any) -> Any:
    """The value without halves of surrogate pairs, which JSON of a log may have and UTF-8 has not."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return [_replace_surrogates(item) for item in value] if isinstance(value, list | tuple) else value
