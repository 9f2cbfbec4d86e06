"""Read published tables: with Spark, or with Arrow in batches of bounded size."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from pipelines.warehouse.literal_paths import open_reader
from pipelines.warehouse.runs import Manifest, list_recorded, select_live
from pipelines.warehouse.storage import Storage
from schemas.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
BATCH = 65_536  # rows


def read_table(
    spark: SparkSession, warehouse: str, name: str, *, date: str | None = None, run: str | None = None
) -> DataFrame:
    """Read a published table with its `dt` and `run`: the newest run of every date, of one date, or one run.

    Runs without the table are ignored: a run of `assay label` does not hide the metrics of an earlier run.
    """
    storage = Storage(warehouse)
    manifests = [m for m in list_recorded(storage, date=date) if run in (None, m.run)]
    if not manifests:
        what = f"run {run}" if run else f"run of {date}" if date else "run"
        raise InputError(f"there is no committed {what}", where=warehouse, hint="`assay runs` lists them")
    paths = [m.tables[name].path for m in select_live(m for m in manifests if name in m.tables)]
    if not paths:
        raise InputError(f"no table {name!r}", where=warehouse, hint=did_you_mean(name, manifests[0].tables))
    options = {"basePath": storage.path(name), "mergeSchema": "true"}
    return open_reader(spark, **options).parquet(*[storage.path(path) for path in paths])


class RunTables:
    """The tables of one run, read without Spark; memory does not grow with the data."""

    def __init__(self, storage: Storage, manifest: Manifest) -> None:
        self.storage = storage
        self.manifest = manifest

    def has(self, name: str) -> bool:
        return name in self.manifest.tables

    def count(self, name: str, where: Any = None) -> int:
        """Return the number of rows of a table, or of those that match; 0 if the run does not have it."""
        if not self.has(name) or where is None:
            return self.manifest.tables[name].rows if self.has(name) else 0
        return int(self.storage.dataset(self.manifest.tables[name].path).count_rows(filter=where))

    def batches(self, name: str, columns: Sequence[str] | None = None, where: Any = None) -> Iterator[pa.RecordBatch]:
        """Yield a table's rows in batches; nothing if the run does not have it. Missing columns are left out."""
        if not self.count(name):
            return
        data = self.storage.dataset(self.manifest.tables[name].path)
        present = [column for column in columns if column in data.schema.names] if columns is not None else None
        scanner = ds.Scanner.from_dataset(
            data, columns=present, filter=where, batch_size=BATCH, batch_readahead=2, fragment_readahead=1
        )
        yield from scanner.to_batches()

    def rows(self, name: str, *, most: int, first: Callable[[Row], Any], where: Any = None) -> list[Row]:
        """Return the `most` rows with the smallest key `first`; no more than these are in memory."""
        rows = (row for batch in self.batches(name, where=where) for row in batch.to_pylist())
        return heapq.nsmallest(most, rows, key=first)
