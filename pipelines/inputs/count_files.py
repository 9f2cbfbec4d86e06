"""Count the rows of plain files in Python workers: the counts of `count_rows` where all rows fit their contract."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from pipelines.inputs.count import (
    MAX_GROUPS,
    CountRequest,
    CountResult,
    FittingRows,
    RowAggregate,
    RowCount,
    limit_groups,
)
from pipelines.inputs.plain_files import PlainFiles, split_files
from schemas.table import Table
from udfs.spark.file_counts import COUNTED, FileCount, QuerySample, count_part, count_parts, merge_counts
from udfs.spark.worker import run_in_worker

ROWS_PER_PART = 2_000_000
ROWS_WORTH_A_JOB = 100_000  # fewer are counted in this process


def count_files(
    spark: SparkSession, files: Mapping[str, PlainFiles], requests: Mapping[str, CountRequest]
) -> dict[str, CountResult]:
    """The counts of the inputs whose rows all fit; for the others, ask Spark."""
    countable = {name: requests[name] for name in files if name in requests and _is_known(files[name], requests[name])}
    contracts = {name: files[name].contract for name in countable}
    samples = {
        name: request.sample.of_files
        for name, request in countable.items()
        if request.sample is not None and request.sample.of_files is not None
    }
    parts = [part for name in countable for part in split_files(files[name], list(files[name].columns), ROWS_PER_PART)]
    if sum(files[name].rows for name in countable) < ROWS_WORTH_A_JOB:
        counted = [(part.table, count_part(part, contracts[part.table], samples.get(part.table))) for part in parts]
    else:
        count = run_in_worker(count_parts(parts, contracts, samples))
        rows = spark.range(0, len(parts), 1, len(parts)).mapInArrow(count, COUNTED).collect()
        counted = [pickle.loads(row[0]) for row in rows]
    results: dict[str, CountResult] = {}
    for name, request in countable.items():
        of_table = [count for table, count in counted if table == name]
        fitting = [count for count in of_table if count is not None]
        if of_table and len(fitting) == len(of_table):
            result = _build_result(merge_counts(fitting), files[name], request)
            results |= {} if result is None else {name: result}
    return results


def _is_known(files: PlainFiles, request: CountRequest) -> bool:
    """Whether the values of the request follow from the counts of rows that fit."""
    sample: QuerySample | None = None if request.sample is None else request.sample.of_files
    follows = all(isinstance(each, RowAggregate) and each.fitting is not None for each in request.aggregates.values())
    return follows and not files.others and request.split is None and (request.sample is None or sample is not None)


def _build_result(count: FileCount, files: PlainFiles, request: CountRequest) -> CountResult | None:
    """The result; None where there are so many systems that Spark has to report them."""
    if len(count.systems) > MAX_GROUPS or not count.rows:
        return None
    values = {
        key: _find_value(aggregate.fitting, count, files)
        for key, aggregate in request.aggregates.items()
        if isinstance(aggregate, RowAggregate) and aggregate.fitting is not None
    }
    sample = None
    if request.sample is not None and count.sample is not None:
        sample = _merge_equal_rows(count.sample, list(request.sample.columns), files.contract)
        if sample.num_rows + max(len(count.systems), 1) > limit_groups(request):
            sample = None
    return CountResult(
        rows=RowCount(count.rows, count.rows, {}),
        systems=count.systems,
        split_systems=frozenset(),
        max_grade=count.max_grade,
        text_bytes=count.text_bytes,
        values=values,
        sample=sample,
    )


def _find_value(fitting: FittingRows, count: FileCount, files: PlainFiles) -> Any:
    if fitting.counts == "rows":
        return count.rows
    if fitting.counts == "nulls":  # a column that the files lack is null in every row
        return count.nulls.get(str(fitting.column), count.rows)
    if fitting.counts == "grades":
        return count.grades.get(fitting.grade or 0, 0)
    return 0


def _merge_equal_rows(rows: pa.Table, columns: list[str], contract: Table) -> pa.Table:
    """The sampled rows in the columns of the request; equal ones are one row."""
    for name in columns:
        if name not in rows.column_names:  # columns that the files lack, and ids that are garbled: there are none
            kind = contract.arrow_schema().field(name).type if name in contract.names else pa.string()
            rows = rows.append_column(name, pa.nulls(len(rows), kind))
    keys = [*columns, *[name for name in ("system",) if name in rows.column_names]]
    merged = rows.group_by(keys).aggregate([([], "count_all")])
    return merged.select([*keys, "count_all"]).rename_columns([*keys, "rows"])
