"""Write and read the parts of `label_days` (see `day_records`)."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from schemas.label_days import BUNDLED, LABEL_DAY_PARTS, Kind
from schemas.spark_errors import describe_spark_error, raise_cause
from schemas.table import Column
from udfs.spark.references import FILES, ONE_BUNDLE_PER_GROUP, list_references
from udfs.spark.worker import run_in_worker

_KIND = "kind"  # a part with bundles has a folder for each value of it

KINDS = "kinds"  # the fact that says which kinds of rows each part has


class DayWriter:
    """Writes the parts of one day; `commit` makes them visible."""

    def __init__(self, attempt: Attempt, spark: SparkSession, date: str, key: str) -> None:
        self._attempt, self._spark = attempt, spark
        self._storage = attempt.storage
        self._date, self._key = date, key
        self._name = f"{key}-{secrets.token_hex(3)}"
        self._target = day_folder(date, self._name)
        # In the folder of the attempt, so that an interrupted one leaves nothing behind.
        renames = self._storage.renames
        self._folder = f"{attempt_path(attempt.run)}/days/{self._name}" if renames else self._target
        self._parts: list[str] = []
        self._kinds: dict[str, list[int]] = {}

    def write(self, part: str, table: DataFrame) -> None:
        """Write a part; it can be read from then on."""
        place = f"{self._folder}/{part}"
        try:
            rows = table.select(*LABEL_DAY_PARTS[part].names)
            if part in BUNDLED:
                # Windows read a day many times, and it takes three quarters of the space when compressed.
                compression = "none" if self._storage.is_local else None
                writer = rows.write.options(**ONE_BUNDLE_PER_GROUP)
                writer.parquet(self._storage.path(place), partitionBy=_KIND, compression=compression)
                self._kinds[part] = sorted(self._list_kinds(place))
            else:
                rows.write.parquet(self._storage.path(place))
        except Exception as error:
            raise_cause(error)
            raise PublishError(
                f"cannot write {LABEL_DAYS}: {describe_spark_error(error)[1]}", where=self._storage.path(place)
            ) from error
        self._parts.append(part)

    def read(self, part: str, *kinds: Kind) -> DataFrame:
        """Rows of a part that has been written, before the commit."""
        return _read_bundles(self._spark, self._storage, part, {f"{self._folder}/{part}": self._kinds[part]}, kinds)

    def discard(self, part: str, *kinds: Kind) -> None:
        """Remove rows that only other parts of this day were computed from."""
        for kind in kinds:
            if kind in self._kinds[part]:
                self._storage.delete(f"{self._folder}/{part}/{_KIND}={int(kind)}")
                self._kinds[part].remove(kind)

    def _list_kinds(self, place: str) -> set[int]:
        names = self._storage.list(place, suffix=".parquet", recursive=True)
        return {int(name.rpartition("/")[0].rpartition("=")[2]) for name in names}

    def _describe(self, part: str) -> TableRecord:
        place = f"{self._folder}/{part}"
        files, size = self._storage.measure(place, suffix=".parquet")
        rows = self._storage.dataset(place).count_rows() if files else 0
        return TableRecord(path=f"{self._target}/{part}", rows=rows, files=files, bytes=size)

    def commit(self, facts: Mapping[str, Any]) -> DayRecord:
        """Publish the day in one atomic write."""
        tables = {part: self._describe(part) for part in self._parts}
        facts = {**facts, KINDS: self._kinds}
        record = DayRecord(dt=self._date, key=self._key, name=self._name, tables=tables, facts=facts)
        try:
            if self._folder != self._target:
                self._storage.move(self._folder, self._target)
        except OSError as error:
            raise PublishError(f"cannot publish {LABEL_DAYS}: {error}", where=self._storage.uri) from error
        self._storage.create(record.path, record.model_dump_json())
        return record


def read_rows_of_days(spark: SparkSession, storage: Storage, records: Iterable[DayRecord], part: str) -> DataFrame:
    """One part of several days that has rows of the log as they are."""
    places = [storage.path(record.tables[part].path) for record in records if part in record.tables]
    schema = _build_schema(LABEL_DAY_PARTS[part].columns)
    return open_reader(spark).schema(schema).parquet(*places) if places else spark.createDataFrame([], schema)


def read_bundles_of_days(
    spark: SparkSession, storage: Storage, records: Iterable[DayRecord], part: str, *kinds: Kind
) -> DataFrame:
    """The bundles of these kinds of several days, or references to them where workers can open the files."""
    tables = ((record.tables[part].path, record.facts) for record in records if part in record.tables)
    places = {path: facts[KINDS].get(part, []) for path, facts in tables}
    return _read_bundles(spark, storage, part, places, kinds)


def _read_bundles(
    spark: SparkSession, storage: Storage, part: str, places: Mapping[str, Collection[int]], kinds: Sequence[Kind]
) -> DataFrame:
    columns = LABEL_DAY_PARTS[part].columns
    folders = [
        (f"{place}/{_KIND}={int(kind)}", int(kind)) for place, kept in places.items() for kind in kinds if kind in kept
    ]
    if storage.is_local:
        files = [
            (storage.local(name), kind) for folder, kind in folders for name in storage.list(folder, suffix=".parquet")
        ]
        listed = spark.createDataFrame(files, FILES)
        names = [column.name for column in columns]
        return listed.mapInArrow(run_in_worker(list_references(names)), _build_schema(columns))
    # Each folder is read by its own path, with its kind as a constant: Spark would list all folders to find it.
    inner = _build_schema(column for column in columns if column.name != _KIND)
    tables = [spark.createDataFrame([], _build_schema(columns))]
    for kind in {kind for _, kind in folders}:
        rows = open_reader(spark).schema(inner).parquet(*[storage.path(place) for place, of in folders if of == kind])
        tables.append(rows.withColumn(_KIND, F.lit(kind)).select(*[column.name for column in columns]))
    return reduce(DataFrame.unionByName, tables)


def _build_schema(columns: Iterable[Column]) -> str:
    """The schema of the contract: to infer one, Spark would read a file of every day first."""
    return ", ".join(f"`{column.name}` {column.type}" for column in columns)
