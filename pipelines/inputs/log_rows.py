"""The rows of a table of a log for functions of Arrow: through Spark, or from files that workers read by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.inputs.plain_files import PlainFiles, group_parts, split_files
from schemas.table import Table
from udfs.spark.bundles import ROWS_AT_ONCE, collect_rows
from udfs.spark.files import FilePart, cast_columns, read_file_part
from udfs.spark.references import store_bundles
from udfs.spark.worker import run_in_worker

Transform = Callable[[pa.Table], Iterable[pa.RecordBatch]]


@dataclass(frozen=True)
class LogRows:
    """A table of a log, and its files where all of their rows fit the contract."""

    table: DataFrame
    contract: Table
    files: PlainFiles | None = None

    def transform(
        self, function: Transform, columns: Sequence[str], schema: str, *, folder: str | None = None
    ) -> DataFrame:
        """The bundles that a function returns for these columns, which it gets some 500,000 rows at a time.

        Workers put them into files of a `folder`, where one is given (see `udfs.spark.references`).
        """
        fields = [self.contract[name] for name in columns]
        if self.files is None:
            absent = {c.name: F.lit(None).cast(c.type) for c in fields if c.name not in self.table.columns}
            rows = self.table.withColumns(absent) if absent else self.table
            return rows.select(*columns).mapInArrow(
                run_in_worker(store_bundles(_run_on_rows(function), folder)), schema
            )
        tasks = group_parts(split_files(self.files, columns, ROWS_AT_ONCE), ROWS_AT_ONCE)
        wanted = pa.schema([self.contract.arrow_schema().field(name) for name in columns])
        numbers = self.table.sparkSession.range(0, len(tasks), 1, len(tasks))
        run = store_bundles(_run_on_files(function, tasks, wanted), folder)
        return numbers.mapInArrow(run_in_worker(run), schema)


def _run_on_rows(function: Transform) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in collect_rows(batches):
            yield from function(rows)

    return run


def _run_on_files(
    function: Transform, tasks: Sequence[Sequence[FilePart]], wanted: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in collect_rows(_read_parts(tasks[number], wanted)):
                    yield from function(rows)

    return run


def _read_parts(parts: Sequence[FilePart], wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the parts in one schema: files may differ in their types, and lack optional columns."""
    for part in parts:
        for batch in read_file_part(part, ROWS_AT_ONCE):
            rows = cast_columns(pa.Table.from_batches([batch]), part)
            for field in wanted:
                if field.name not in part.columns:
                    absent = pa.nulls(rows.num_rows, field.type)
                    text = pa.types.is_string(field.type)
                    rows = rows.append_column(field.name, absent.dictionary_encode() if text else absent)
            yield from rows.select(wanted.names).to_batches()
