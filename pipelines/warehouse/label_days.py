"""Write and read the parts of `label_days` (see `day_records`)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.day_records import DayRecord, day_folder
from pipelines.warehouse.leftovers import attempt_path
from pipelines.warehouse.literal_paths import open_reader
from pipelines.warehouse.runs import LABEL_DAYS, TableRecord
from pipelines.warehouse.storage import Storage
from schemas.errors import PublishError
from schemas.label_days import LABEL_DAY_PARTS
from schemas.spark_errors import describe_spark_error, raise_cause


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


def read_part(spark: SparkSession, storage: Storage, records: Iterable[DayRecord], part: str) -> DataFrame:
    """Read one part of several days."""
    return _read_paths(
        spark, part, [storage.path(record.tables[part].path) for record in records if part in record.tables]
    )


def _read_paths(spark: SparkSession, part: str, paths: Sequence[str]) -> DataFrame:
    # The schema is that of the contract: to infer it, Spark would read a file of every day first.
    schema = ", ".join(f"`{column.name}` {column.type}" for column in LABEL_DAY_PARTS[part].columns)
    return open_reader(spark).schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)
