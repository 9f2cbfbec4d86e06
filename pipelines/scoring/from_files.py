"""Score lists whose tables workers can read from files: Spark moves bundles of rows instead of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import pyarrow as pa
from pyspark.sql import SparkSession

from pipelines.inputs.plain_files import PlainFiles, split_files
from udfs.spark.bundles import BUNDLES, exchange
from udfs.spark.divide import LABELS, QUERIES, RANKINGS, divide_files
from udfs.spark.files import FilePart
from udfs.spark.references import store_bundles
from udfs.spark.score import ScoreRequest, score_bundles
from udfs.spark.worker import run_in_worker
from udfs.spark.worker_table import WorkerTable

PARTS_PER_CORE = 4  # so that cores end at about the same time
_READ = {
    RANKINGS: ("system", "query_id", "doc_id", "rank", "score"),
    LABELS: ("query_id", "doc_id", "grade"),
    QUERIES: ("query_id", "weight"),
}


@dataclass(frozen=True)
class ListFiles:
    """The files of the tables that lists are scored with.

    `bundle_folder` is one for what workers leave for each other; None where Spark moves it.
    """

    rankings: PlainFiles
    labels: PlainFiles
    queries: PlainFiles | None = None
    bundle_folder: str | None = None

    @property
    def tables(self) -> dict[int, PlainFiles]:
        """The tables by the kind of their bundles."""
        tables = {RANKINGS: self.rankings, LABELS: self.labels}
        return tables if self.queries is None else {**tables, QUERIES: self.queries}

    def can_read(self, segments: Sequence[str]) -> bool:
        """Whether workers can read all that scoring reads of the tables."""
        return all(table.can_read([*_READ[kind], *segments]) for kind, table in self.tables.items())


def score_files(
    spark: SparkSession, files: ListFiles, request: ScoreRequest, schema: pa.Schema, *, partitions: int, cores: int
) -> WorkerTable:
    """One row per system and query, in the columns of the schema."""
    parts = _list_parts(files, request, cores)
    divide = run_in_worker(store_bundles(divide_files(parts, request.systems, partitions), files.bundle_folder))
    bundles = spark.range(0, len(parts), 1, len(parts)).mapInArrow(divide, BUNDLES)
    return WorkerTable(exchange(bundles, partitions), score_bundles(request), schema)


def _list_parts(files: ListFiles, request: ScoreRequest, cores: int) -> list[FilePart]:
    rows = ceil(sum(table.rows for table in files.tables.values()) / (PARTS_PER_CORE * cores))
    return [
        part
        for kind, table in files.tables.items()
        for part in split_files(table, _list_columns(kind, request), max(1, rows))
    ]


def _list_columns(kind: int, request: ScoreRequest) -> list[str]:
    """The columns to read of a table."""
    unread = () if kind != RANKINGS or request.conventions.order == "rank" else ("rank",)
    return [name for name in (*_READ[kind], *(request.segments if kind == QUERIES else ())) if name not in unread]
