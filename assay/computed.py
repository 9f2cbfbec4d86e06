"""An evaluation that has been computed: in memory, or by Spark and published in a warehouse."""

from __future__ import annotations

import datetime as dt
import hashlib
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from assay.in_memory import MemoryRun
from pipelines.comparison.readings.registry import Reading
from pipelines.comparison.verdicts import Verdict
from pipelines.config.model import Config
from pipelines.inputs.count import RowCount
from pipelines.plan import define_evaluation
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.code_version import hash_code
from pipelines.warehouse.literal_paths import open_reader
from pipelines.warehouse.republish import republish_run
from pipelines.warehouse.run_key import hash_json
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ComputedRun(Protocol):
    """What a result reads of an evaluation, wherever it was computed."""

    @property
    def config(self) -> Config: ...
    @property
    def systems(self) -> tuple[str, ...]: ...
    @property
    def verdicts(self) -> Sequence[Verdict]: ...
    @property
    def readings(self) -> Sequence[Reading]: ...
    @property
    def counts(self) -> Mapping[str, RowCount]: ...
    @property
    def names(self) -> Collection[str]:
        """The tables of the run."""

    def read(self, name: str) -> pa.Table:
        """A table of the run."""

    def publish(self, storage: Storage) -> Manifest:
        """Publish the run in a warehouse; a committed run of the same key is returned instead."""

    def locate(self) -> tuple[Storage, Manifest]:
        """A warehouse that has the run, and its manifest there."""


def open_working_folder() -> str:
    """A new folder for a run that has no warehouse yet; removed when the process ends, as DataFrames may read it."""
    return tempfile.mkdtemp(dir=_open_root().name)


@cache
def _open_root() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="assay-")


@dataclass(frozen=True, eq=False)
class InMemoryRun:
    """An evaluation in memory."""

    run: MemoryRun
    config: Config
    date: dt.date

    @property
    def systems(self) -> tuple[str, ...]:
        return self.run.systems

    @property
    def verdicts(self) -> Sequence[Verdict]:
        return self.run.verdicts

    @property
    def readings(self) -> Sequence[Reading]:
        return self.run.readings

    @property
    def counts(self) -> Mapping[str, RowCount]:
        return self.run.counts

    @property
    def names(self) -> Collection[str]:
        return self.run.tables.keys()

    def read(self, name: str) -> pa.Table:
        return self.run.tables[name]

    def locate(self) -> tuple[Storage, Manifest]:
        return self._location

    @cached_property
    def _location(self) -> tuple[Storage, Manifest]:
        storage = Storage(open_working_folder())
        return storage, self.publish(storage)

    def publish(self, storage: Storage) -> Manifest:
        work = define_evaluation(self.config)
        digests = {name: _hash_rows(rows) for name, rows in self.run.inputs.items()}
        key = work.build_key(self.date, digests)
        config = self.config.model_copy(update={"warehouse": storage.uri})
        committed = define_evaluation(config).find_committed(self.date, key)
        if committed is not None:
            return committed.manifest
        with Attempt(storage, self.date, key) as attempt:
            for name, table in self.run.tables.items():
                attempt.write_arrow(name, table)
            return attempt.commit(
                seconds={},
                config=config.dump_redacted(),
                config_hash=hash_json(self.config.dump_settings())[:12],
                code=hash_code(),
                spark="none: computed in memory",
                inputs={name: self._describe_input(name, digests[name]) for name in digests},
                systems=self.run.systems,
                conventions=self.run.conventions.model_dump(),
                gate=[verdict.model_dump() for verdict in self.run.verdicts],
                readings=[asdict(reading) for reading in self.run.readings],
            )

    def _describe_input(self, name: str, digest: str) -> dict[str, Any]:
        rows = self.run.inputs[name]
        columns = {field.name: str(field.type) for field in rows.schema}
        place = {"places": (self.config.sources()[name].table,), "missing_days": (), "files": 0}
        return place | {"digest": digest, "columns": columns} | asdict(self.run.counts[name])


@dataclass(frozen=True, eq=False)
class PublishedRun:
    """A run that Spark computed and published, in a warehouse of the caller or in a working folder."""

    storage: Storage
    manifest: Manifest
    config: Config

    @property
    def systems(self) -> tuple[str, ...]:
        return self.manifest.systems

    @cached_property
    def verdicts(self) -> Sequence[Verdict]:
        return [Verdict.model_validate(verdict) for verdict in self.manifest.gate]

    @cached_property
    def readings(self) -> Sequence[Reading]:
        return [Reading(**reading) for reading in self.manifest.readings]

    @cached_property
    def counts(self) -> Mapping[str, RowCount]:
        names = RowCount.__dataclass_fields__
        return {
            table: RowCount(**{name: facts[name] for name in names}) for table, facts in self.manifest.inputs.items()
        }

    @property
    def names(self) -> Collection[str]:
        return self.manifest.tables.keys()

    def read(self, name: str) -> pa.Table:
        return self.storage.dataset(self.manifest.tables[name].path).to_table()

    def open_frame(self, spark: SparkSession, name: str) -> DataFrame:
        """A table of the run as a DataFrame of Spark."""
        return open_reader(spark).parquet(self.storage.path(self.manifest.tables[name].path))

    def locate(self) -> tuple[Storage, Manifest]:
        return self.storage, self.manifest

    def publish(self, storage: Storage) -> Manifest:
        if storage.uri == self.storage.uri:
            return self.manifest
        return republish_run(self.storage, self.manifest, storage)


def _hash_rows(rows: pa.Table) -> str:
    """A digest of a table that does not depend on how it is chunked."""
    sink = pa.BufferOutputStream()
    whole = rows.combine_chunks()
    with pa.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole)
    return hashlib.sha256(sink.getvalue()).hexdigest()
