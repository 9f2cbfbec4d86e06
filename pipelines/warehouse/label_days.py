"""`label_days`: statistics of single days of a log, committed one by one and shared by the runs of all windows.

A day has a folder `label_days/dt=DAY/key=NAME` with one folder per part (see `schemas.label_days`), and a record
`label_days/dt=DAY/NAME.json`, which is written last: a day exists when its record does. The key says what the day was
computed from, so a day is never changed, only replaced by one with another key.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pyspark.sql import DataFrame, SparkSession

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.leftovers import attempt_path
from pipelines.warehouse.literal_paths import open_reader
from pipelines.warehouse.runs import TableRecord
from pipelines.warehouse.storage import Storage
from schemas.errors import PublishError
from schemas.label_days import LABEL_DAY_PARTS
from schemas.spark_errors import describe_spark_error, raise_cause

LABEL_DAYS = "label_days"


class DayRecord(BaseModel):
    """The record of one day; writing it commits the day."""

    model_config = ConfigDict(frozen=True)

    dt: str
    key: str
    name: str  # of its folder: the key, and what tells apart two attempts at the same work
    tables: Mapping[str, TableRecord]
    facts: Mapping[str, Any]

    @property
    def path(self) -> str:
        """The record in the warehouse."""
        return f"{LABEL_DAYS}/dt={self.dt}/{self.name}.json"


class DayWriter:
    """Writes the parts of one day; `commit` makes them visible."""

    def __init__(self, attempt: Attempt, date: str, key: str) -> None:
        self._attempt = attempt
        self._storage = attempt.storage
        self._date, self._key = date, key
        self._name = f"{key}-{secrets.token_hex(3)}"
        self._target = day_folder(date, self._name)
        # In the folder of the attempt, so that an interrupted one leaves nothing behind.
        renames = self._storage.renames
        self._folder = f"{attempt_path(attempt.run)}/days/{self._name}" if renames else self._target
        self._tables: dict[str, TableRecord] = {}

    def write(self, part: str, table: DataFrame) -> DataFrame:
        """Write a part and return it as written, to be read until the commit."""
        place = f"{self._folder}/{part}"
        try:
            table.select(*LABEL_DAY_PARTS[part].names).write.parquet(self._storage.path(place))
            files, size = self._storage.measure(place, suffix=".parquet")
            rows = self._storage.dataset(place).count_rows() if files else 0
        except Exception as error:
            raise_cause(error)
            raise PublishError(
                f"cannot write {LABEL_DAYS}: {describe_spark_error(error)[1]}", where=self._storage.path(place)
            ) from error
        self._tables[part] = TableRecord(path=f"{self._target}/{part}", rows=rows, files=files, bytes=size)
        return _read_paths(table.sparkSession, part, [self._storage.path(place)])

    def commit(self, facts: Mapping[str, Any]) -> DayRecord:
        """Publish the day in one atomic write."""
        record = DayRecord(dt=self._date, key=self._key, name=self._name, tables=self._tables, facts=facts)
        try:
            if self._folder != self._target:
                self._storage.move(self._folder, self._target)
        except OSError as error:
            raise PublishError(f"cannot publish {LABEL_DAYS}: {error}", where=self._storage.uri) from error
        self._storage.create(record.path, record.model_dump_json())
        return record


def day_folder(date: str, name: str) -> str:
    """Return the folder of a day in the warehouse."""
    return f"{LABEL_DAYS}/dt={date}/key={name}"


def find_day(storage: Storage, date: str, key: str) -> DayRecord | None:
    """Find a committed day with this key."""
    records = (read_record(storage, name) for name in storage.list(f"{LABEL_DAYS}/dt={date}", suffix=".json"))
    return next((record for record in records if record is not None and record.key == key), None)


def list_day_records(storage: Storage) -> Iterator[DayRecord]:
    """List all committed days."""
    for name in storage.list(LABEL_DAYS, suffix=".json", recursive=True):
        record = read_record(storage, name)
        if record is not None:
            yield record


def read_record(storage: Storage, name: str) -> DayRecord | None:
    """Read the record of a day; None where it is damaged, or not the one of its place: the day is computed again."""
    try:
        record = DayRecord.model_validate_json(storage.get(name))
    except (OSError, ValidationError, UnicodeDecodeError):
        return None
    places = {part: f"{day_folder(record.dt, record.name)}/{part}" for part in record.tables}
    return record if record.path == name and {p: t.path for p, t in record.tables.items()} == places else None


def read_part(spark: SparkSession, storage: Storage, records: Iterable[DayRecord], part: str) -> DataFrame:
    """Read one part of several days."""
    return _read_paths(
        spark, part, [storage.path(record.tables[part].path) for record in records if part in record.tables]
    )


def _read_paths(spark: SparkSession, part: str, paths: Sequence[str]) -> DataFrame:
    # The schema is that of the contract: to infer it, Spark would read a file of every day first.
    schema = ", ".join(f"`{column.name}` {column.type}" for column in LABEL_DAY_PARTS[part].columns)
    return open_reader(spark).schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)
