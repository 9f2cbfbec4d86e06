"""A table that a function of Python workers computes: as rows of Spark, or written to files by the workers themselves.

Spark takes each row out of Arrow and puts it into Parquet by itself, which takes longer than scoring a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from schemas.errors import PublishError
from udfs.spark.worker import run_in_worker

Batches = Iterable[pa.RecordBatch]
Compute = Callable[[Batches], Batches]
_WRITTEN = "rows bigint"


@dataclass(frozen=True)
class WorkerTable:
    """What `compute` makes of the rows of each partition of `source`: batches of this schema."""

    source: DataFrame
    compute: Compute
    schema: pa.Schema

    @property
    def struct(self) -> T.StructType:
        """The schema in Spark."""
        return from_arrow_schema(self.schema)

    def rows(self) -> DataFrame:
        """The rows in Spark."""
        return self.source.mapInArrow(run_in_worker(self.compute), self.struct)

    def write(self, folder: str) -> None:
        """Let each task write its rows as a Parquet file into a folder that all workers have."""
        write = run_in_worker(write_parquet(self.compute, self.schema, folder))
        if not self.source.mapInArrow(write, _WRITTEN).collect():  # a partition without rows is not passed to a worker
            _write_file(self.schema.empty_table(), Path(folder))


def write_parquet(compute: Compute, schema: pa.Schema, folder: str) -> Compute:
    """The function that writes what `compute` returns, and returns the number of its rows."""

    def run(batches: Batches) -> Batches:
        parts = [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in compute(batches)]
        rows = pa.Table.from_batches(parts, schema)
        try:
            _write_file(rows, Path(folder))
        except OSError as error:
            raise PublishError(f"cannot write: {error}", where=folder) from error
        yield pa.RecordBatch.from_pydict({"rows": pa.array([len(rows)], pa.int64())})

    return run


def _write_file(rows: pa.Table, folder: Path) -> None:
    """Write the file of this task, which appears when it is complete; that of an earlier attempt is replaced."""
    task = TaskContext.get()
    number, attempt = (0, 0) if task is None else (task.partitionId(), task.taskAttemptId())
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"_{number:05d}.{attempt}"  # readers skip such names
    try:
        pq.write_table(rows, part, store_schema=False)
        part.replace(folder / f"part-{number:05d}.parquet")
    finally:
        part.unlink(missing_ok=True)
