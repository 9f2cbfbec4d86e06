"""Write and read the parts of `label_days` (see `day_records`)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.day_records import DayRecord, day_folder
from pipelines.warehouse.leftovers import attempt_path
from pipelines.warehouse.literal_paths import open_reader
from pipelines.warehouse.runs import LABEL_DAYS, TableRecord
from pipelines.warehouse.storage import Storage
from schemas.errors import PublishError
from schemas.label_days import LABEL_DAY_PARTS, PARTITIONED
from schemas.spark_errors import describe_spark_error, raise_cause

FOLDERS = "folders"  # the fact that says how parts are divided


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
        self._folders: dict[str, list[str]] = {}  # of the parts that are divided

    def write(self, part: str, table: DataFrame) -> DataFrame:
        """Write a part and return it as written, to be read until the commit."""
        place = f"{self._folder}/{part}"
        try:
            rows = table.select(*LABEL_DAY_PARTS[part].names)
            rows.write.parquet(self._storage.path(place), partitionBy=PARTITIONED.get(part))
            files, size = self._storage.measure(place, suffix=".parquet")
            size_in_rows = self._storage.dataset(place).count_rows() if files else 0
        except Exception as error:
            raise_cause(error)
            raise PublishError(
                f"cannot write {LABEL_DAYS}: {describe_spark_error(error)[1]}", where=self._storage.path(place)
            ) from error
        self._tables[part] = TableRecord(path=f"{self._target}/{part}", rows=size_in_rows, files=files, bytes=size)
        if part in PARTITIONED:
            self._folders[part] = sorted(self._list_folders(place))
        return _read_places(table.sparkSession, part, {self._storage.path(place): self._folders.get(part, [])})

    def _list_folders(self, place: str) -> set[str]:
        """The values by which a part is divided, from the names of its folders."""
        names = self._storage.list(place, suffix=".parquet", recursive=True)
        return {name.rpartition("/")[0].rpartition("=")[2] for name in names}

    def commit(self, facts: Mapping[str, Any]) -> DayRecord:
        """Publish the day in one atomic write."""
        facts = {**facts, FOLDERS: self._folders}
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
    tables = ((record.tables[part].path, record.facts) for record in records if part in record.tables)
    return _read_places(spark, part, {storage.path(path): facts[FOLDERS].get(part, []) for path, facts in tables})


def _read_places(spark: SparkSession, part: str, places: Mapping[str, Sequence[str]]) -> DataFrame:
    """A part in these places, each with the folders that divide it.

    Each folder is read by its own path, with its value as a constant: Spark finds the column in the paths of one place
    only, and a filter then leaves out whole folders.
    """
    columns = {column.name: column.type for column in LABEL_DAY_PARTS[part].columns}
    # The schema is that of the contract: to infer it, Spark would read a file of every day first.
    schema = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    divided = PARTITIONED.get(part)
    if divided is None:
        return open_reader(spark).schema(schema).parquet(*places) if places else spark.createDataFrame([], schema)
    inner = ", ".join(f"`{name}` {kind}" for name, kind in columns.items() if name != divided)
    tables = [spark.createDataFrame([], schema)]
    for value in sorted({value for values in places.values() for value in values}):
        paths = [f"{place}/{divided}={value}" for place, values in places.items() if value in values]
        rows = open_reader(spark).schema(inner).parquet(*paths)
        tables.append(rows.withColumn(divided, F.lit(int(value))).select(*columns))
    return reduce(DataFrame.unionByName, tables)
