"""Read query metrics inside Spark workers from the Parquet files that they were written to.

Spark would decode each row, copy its numbers into a list, and convert that for Python by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from udfs.spark.worker import run_in_worker
from udfs.statistics.frame import NUMBERS, QUERY
from udfs.statistics.partial import partial_sums
from udfs.statistics.plan import BETWEEN, Plan
from udfs.xxhash import hash_like_spark

VALUES_DDL = "segment int, value string"
_ROWS_AT_ONCE = 1 << 16

Batches = Iterable[pa.RecordBatch]
Read = Callable[[Batches], Batches]


def read_metric_files(spark: SparkSession, files: Sequence[str], read: Read, schema: str) -> DataFrame:
    """What `read`, a function from numbers of these files, returns for all of them."""
    return spark.range(len(files)).mapInArrow(run_in_worker(read), schema)


def sum_files(files: Sequence[str], plan: Plan) -> Read:
    """The function from numbers of files to the partial sums of their rows."""
    sum_rows = partial_sums(plan, whole=False)
    names = list(dict.fromkeys(("query_id", "system", "weight", *plan.columns, *plan.numbers)))

    def read(batches: Batches) -> Iterator[pa.RecordBatch]:
        for path in _list_paths(batches, files):
            with pq.ParquetFile(path) as file:
                for rows in file.iter_batches(_ROWS_AT_ONCE, columns=names, use_threads=False):
                    yield _prepare_rows(rows, plan)

    return lambda batches: sum_rows(read(batches))


def _prepare_rows(rows: pa.RecordBatch, plan: Plan) -> pa.RecordBatch:
    """The rows with the columns that partial sums read."""
    numbers = np.empty((rows.num_rows, len(plan.numbers)))
    for at, name in enumerate(plan.numbers):
        numbers[:, at] = rows[name].cast(pa.float64()).to_numpy(zero_copy_only=False)
    columns = {
        QUERY: pa.array(hash_like_spark(rows["query_id"].cast(pa.large_string()))),
        **{name: rows[name] for name in ("system", "weight", *plan.columns)},
        NUMBERS: pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), len(plan.numbers)),
    }
    return pa.RecordBatch.from_pydict(columns)


def list_values(files: Sequence[str], segments: Sequence[Sequence[str]], most: int) -> Read:
    """The function from numbers of files to the values of each segment, of a file at most one more than `most`."""
    names = list(dict.fromkeys(name for segment in segments for name in segment))

    def run(batches: Batches) -> Batches:
        for path in _list_paths(batches, files):
            rows = pq.read_table(path, columns=names, use_threads=False, partitioning=None)
            for number, segment in enumerate(segments):
                distinct = rows.group_by(list(segment)).aggregate([]).select(list(segment)).slice(0, most + 1)
                values = [_join_value(row.values()) for row in distinct.to_pylist()]
                columns = {
                    "segment": pa.array([number] * len(values), pa.int32()),
                    "value": pa.array(values, pa.string()),
                }
                yield pa.RecordBatch.from_pydict(columns)

    return run


def _join_value(parts: Iterable[str | None]) -> str:
    return BETWEEN.join(part for part in parts if part is not None)


def _list_paths(batches: Batches, files: Sequence[str]) -> Iterator[str]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield files[number]
