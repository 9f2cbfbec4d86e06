"""The counts of a log whose days are read one by one: those of each day, stored with it, and their sums.

Sums over a window equal the counts of all its rows. Times are judged by the day of their files: implausible is what is
more than a year after the last window that has the day.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Sequence
from typing import Any

import pyarrow as pa

from pipelines.inputs.count import (
    Aggregate,
    CountRequest,
    CountResult,
    RowCount,
    count_rows,
    load_result,
    merge_values,
)
from pipelines.inputs.count_files import count_files
from pipelines.inputs.days import LogDay
from pipelines.inputs.settings import InputSource
from pipelines.quality.row_figures import OUTSIDE, FigureKey, build_aggregates, split_by_day
from schemas.conform import ConformedTable
from udfs.spark.file_counts import merge_sketches

_DAYS = "days"


def count_log(days: Sequence[LogDay], table: ConformedTable, request: CountRequest, source: InputSource) -> CountResult:
    """Count the rows of a log: those of new days are read, the others are known."""
    name = table.table.name
    results = []
    for day in days:
        day_request = request_day(request, table, source, day.date)
        if day.record is None:
            result = _count_day(day, name, day_request)
        else:
            result = load_result(day.record.facts["counts"][name], day_request)
        day.results[name] = result
        results.append(result)
    return merge_results(results, request, [day.results[name] for day in days if day.record is None])


def _count_day(day: LogDay, name: str, request: CountRequest) -> CountResult:
    """Count the rows of a new day: in its files, if workers can read them and all of their rows fit."""
    files = day.files.get(name)
    counted = None if files is None else count_files(day.spark, {name: files}, {name: request}).get(name)
    if files is None or counted is None:
        return count_rows(day.tables[name], request)
    day.fitting[name] = files
    return counted


def request_day(request: CountRequest, table: ConformedTable, source: InputSource, day: dt.date) -> CountRequest:
    """What to compute of one day, so that it serves every window that has the day."""
    others = {key: value for key, value in request.aggregates.items() if not isinstance(key, FigureKey)}
    if len(others) == len(request.aggregates):
        return CountRequest(others, of_files=request.of_files)
    reach = source.days - 1
    around = source.model_copy(update={"days": 2 * reach + 1})
    last = day + dt.timedelta(days=reach)
    figures = build_aggregates(table, around, last)
    aggregates: dict[Hashable, Aggregate] = {**others, **dict(figures.items())}
    return CountRequest(aggregates, split=split_by_day(table, around, last), of_files=request.of_files)


def merge_results(
    results: Sequence[CountResult], request: CountRequest, new: Sequence[CountResult] = ()
) -> CountResult:
    """The counts of a window, from those of its days; samples are of the `new` ones, which are read."""
    reasons = sorted({reason for result in results for reason in result.rows.rejected})
    values = {key: _merge(key, aggregate, results, request) for key, aggregate in request.aggregates.items()}
    return CountResult(
        rows=RowCount(
            read=sum(result.rows.read for result in results),
            kept=sum(result.rows.kept for result in results),
            rejected={reason: sum(result.rows.rejected.get(reason, 0) for result in results) for reason in reasons},
        ),
        systems=frozenset().union(*[result.systems for result in results]),
        split_systems=frozenset(),
        max_grade=None,
        text_bytes=sum(result.text_bytes for result in results),
        values=values,
        sample=None,
        unit_samples=_join_samples(new),
        sketches=merge_sketches([result.sketches for result in new]) if all(result.sketches for result in new) else {},
    )


def _join_samples(results: Sequence[CountResult]) -> dict[str, pa.Table]:
    """The sampled units of all of these days; none of a unit that one of the days does not have."""
    units = set.intersection(*[set(result.unit_samples) for result in results]) if results else set()
    return {unit: pa.concat_tables([result.unit_samples[unit] for result in results]) for unit in units}


def _merge(key: Hashable, aggregate: Aggregate, results: Sequence[CountResult], request: CountRequest) -> Any:
    """One value of the window; rows of days that only other windows have are outside of this one."""
    value = merge_values(aggregate, [result.values.get(key) for result in results])
    if not isinstance(key, FigureKey) or key.name != OUTSIDE:
        return value
    beyond = [
        rows
        for result in results
        for other, rows in result.values.items()
        if isinstance(other, FigureKey) and other.name == _DAYS and other not in request.aggregates
    ]
    return value + sum(rows or 0 for rows in beyond)
