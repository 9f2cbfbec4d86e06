"""Count the rows of plain files in Python workers: the counts of `count_rows` where all rows fit their contract."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from pipelines.inputs.count import (
    MAX_GROUPS,
    CountRequest,
    CountResult,
    FittingRows,
    RowAggregate,
    RowCount,
    SplitCount,
    limit_groups,
)
from pipelines.inputs.plain_files import PlainFiles, group_parts, split_files
from schemas.table import Table
from udfs.spark.file_counts import COUNTED, FileCount, count_part, count_parts, merge_counts
from udfs.spark.worker import run_in_worker

BY_QUERY = "query_id"  # the unit of the sample that a request has for Spark too
ROWS_PER_PART = 2_000_000
ROWS_PER_TASK = 500_000  # of small files; a part is not divided
ROWS_WORTH_A_JOB = 100_000  # fewer are counted in this process


def count_files(
    spark: SparkSession, files: Mapping[str, PlainFiles], requests: Mapping[str, CountRequest]
) -> dict[str, CountResult]:
    """The counts of the inputs whose rows all fit; for the others, ask Spark."""
    countable = {name: requests[name] for name in files if name in requests and _is_known(files[name], requests[name])}
    contracts = {name: files[name].contract for name in countable}
    of_files = {name: request.of_files for name, request in countable.items()}
    parts = [part for name in countable for part in split_files(files[name], list(files[name].columns), ROWS_PER_PART)]
    if sum(files[name].rows for name in countable) < ROWS_WORTH_A_JOB:
        counted = [(part.table, count_part(part, contracts[part.table], of_files[part.table])) for part in parts]
    else:
        tasks = group_parts(parts, ROWS_PER_TASK)
        count = run_in_worker(count_parts(tasks, contracts, of_files))
        rows = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(count, COUNTED).collect()
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
    follows = all(isinstance(each, SplitCount) or each.fitting is not None for each in request.aggregates.values())
    is_sampled = request.sample is None or any(each.unit == BY_QUERY for each in request.of_files.samples)
    return follows and not files.others and is_sampled


def _build_result(count: FileCount, files: PlainFiles, request: CountRequest) -> CountResult | None:
    """The result; None where Spark has to count: so many systems, or values that it must look at."""
    if len(count.systems) > MAX_GROUPS or not count.rows:
        return None
    fitting = {key: each.fitting for key, each in request.aggregates.items() if isinstance(each, RowAggregate)}
    if not all(each is None or _is_within(each, count) for each in fitting.values()):
        return None
    splits = {key: each for key, each in request.aggregates.items() if isinstance(each, SplitCount)}
    values = {key: _find_value(each, count, files) for key, each in fitting.items() if each is not None}
    values |= dict(zip(splits, _count_splits(list(splits.values()), count), strict=True))
    sample, sampled = None, count.samples.get(BY_QUERY)
    if request.sample is not None and sampled is not None:
        sample = _merge_equal_rows(sampled, list(request.sample.columns), files.contract)
        if sample.num_rows + max(len(count.systems), 1) > limit_groups(request):
            sample = None
    return CountResult(
        rows=RowCount(count.rows, count.rows, {}),
        systems=count.systems,
        split_systems=frozenset(),
        max_grade=count.max_grade,
        text_bytes=count.text_bytes,
        values={key: values[key] for key in request.aggregates},
        sample=sample,
        unit_samples=count.samples,
        sketches=count.sketches,
    )


def _is_within(fitting: FittingRows, count: FileCount) -> bool:
    """Whether no value is outside of the range in question."""
    column = str(fitting.column)
    if fitting.within is None or column not in count.smallest:
        return True
    low, high = fitting.within
    return low <= count.smallest[column] and count.largest[column] <= high


def _find_value(fitting: FittingRows, count: FileCount, files: PlainFiles) -> Any:
    column = str(fitting.column)
    if fitting.counts == "rows":
        return count.rows
    if fitting.counts == "nulls":  # a column that the files lack is null in every row
        return count.nulls.get(column, count.rows)
    if fitting.counts == "grades":
        return count.grades.get(fitting.grade or 0, 0)
    if fitting.counts == "choice":
        return count.choices.get((column, str(fitting.choice)), 0)
    if fitting.counts == "largest":
        largest = count.largest.get(column)
        return largest if largest is None or fitting.per == 1 else largest / fitting.per
    return 0 if fitting.counts == "nothing" else None


def _count_splits(splits: Sequence[SplitCount], count: FileCount) -> list[int]:
    """The rows of each day, and of all others."""
    of_days = {str(np.datetime64(day, "D")): rows for day, rows in count.days.items()}
    others = count.rows - sum(of_days.get(split.value, 0) for split in splits if not split.is_other)
    return [others if split.is_other else of_days.get(split.value, 0) for split in splits]


def _merge_equal_rows(rows: pa.Table, columns: list[str], contract: Table) -> pa.Table:
    """The sampled rows in the columns of the request; equal ones are one row."""
    for name in columns:
        if name not in rows.column_names:  # columns that the files lack, and ids that are garbled: there are none
            kind = contract.arrow_schema().field(name).type if name in contract.names else pa.string()
            rows = rows.append_column(name, pa.nulls(len(rows), kind))
    keys = [*columns, *[name for name in ("system",) if name in rows.column_names]]
    merged = rows.group_by(keys).aggregate([([], "count_all")])
    return merged.select([*keys, "count_all"]).rename_columns([*keys, "rows"])
