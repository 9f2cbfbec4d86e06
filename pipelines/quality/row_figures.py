"""Figures of single inputs: aggregates over all rows, rejected ones included, computed in the pass that counts them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.inputs.count import Aggregate, FittingRows, RowAggregate, SplitCount
from pipelines.inputs.listing import window_dates
from pipelines.inputs.settings import InputSource
from schemas.conform import ConformedTable
from schemas.table import Table
from udfs.ragged import Ints
from udfs.spark.file_counts import GRADES, estimate_distinct

EARLIEST = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
LONGEST_VISIT = 86_400  # seconds; longer ones are in another unit
OUTSIDE = "outside"  # of the window
DISTINCT = {"query_id": "queries", "serp_id": "pages"}  # of impressions: the columns and their figures


@dataclass(frozen=True)
class FigureKey:
    """The key of an aggregate: the figure in the manifest that its value goes to."""

    name: str
    part: str | None = None  # the entry of a figure that is a mapping: a day, a grade or a column
    end: Literal["smallest", "largest"] | None = None  # of a figure that is a sample: the value is one of its ends


Aggregates = dict[FigureKey, Aggregate]


def list_requested_days(source: InputSource, date: dt.date) -> list[str] | None:
    """The days that the configuration requests of an input; None where it names none."""
    dated = any("{date}" in text for text in (*source.paths, source.where or ""))
    return [day.isoformat() for day in window_dates(date, source.days)] if dated else None


def build_aggregates(table: ConformedTable, source: InputSource, date: dt.date) -> Aggregates:
    """The aggregates that the checks need of an input, beyond its row counts."""
    days = list_requested_days(source, date) or []
    columns = [name for name in _list_optional_columns(table.table) if name in table.source_columns]
    empty: Aggregates = {
        FigureKey("empty", name): RowAggregate(F.count_if(F.col(name).isNull()), fitting=FittingRows("nulls", name))
        for name in columns
    }
    return _build_table_aggregates(table.table.name, days, date) | empty


def split_by_day(table: ConformedTable, source: InputSource, date: dt.date) -> Column | None:
    """The day of each row of a log, as `build_aggregates` counts them; None where the configuration names no days."""
    days = list_requested_days(source, date)
    if days is None or table.table.name not in ("impressions", "interactions"):
        return None
    day = F.to_date("ts")
    in_window = day.isin(*[F.lit(text).cast("date") for text in days])
    return F.when(in_window, day.cast("string")).when(day.isNotNull(), F.lit(OUTSIDE))


def collect_row_figures(values: Mapping[Hashable, Any], days: list[str] | None) -> dict[str, Any]:
    """The figures of an input, from the values of its aggregates."""
    figures: dict[str, Any] = {"window": days} if days else {}
    for key, value in values.items():
        if not isinstance(key, FigureKey):
            continue
        if key.end is not None:
            figures.setdefault(key.name, []).extend([] if value is None else [f"{value:,.0f} s"])
        elif key.part is not None:
            figures.setdefault(key.name, {})[key.part] = value
        else:
            figures[key.name] = value
    if "grades" in figures:
        figures["grades"] = {grade: count for grade, count in figures["grades"].items() if count}
    return figures


def count_distinct_ids(table: ConformedTable, sketches: Mapping[str, Ints]) -> dict[str, int]:
    """Approximate numbers of queries and pages of a log, from the sketches of its files where there are some.

    With Spark, distinct counts do not merge, so this is a second pass.
    """
    if table.table.name != "impressions":
        return {}
    if sketches:
        return {figure: estimate_distinct(sketches[name]) for name, figure in DISTINCT.items()}
    estimates = [F.approx_count_distinct(name).alias(figure) for name, figure in DISTINCT.items()]
    counts = table.marked_rows.agg(*estimates).first()
    return {} if counts is None else counts.asDict()


def _list_optional_columns(table: Table) -> list[str]:
    """The optional columns, without those of which a row needs only one."""
    return [column.name for column in table.columns if column.optional and column.name not in table.one_of]


def _build_table_aggregates(name: str, days: Sequence[str], date: dt.date) -> Aggregates:
    if name == "impressions":
        return {
            FigureKey("zero_positions"): RowAggregate(
                F.count_if(F.col("position") == 0), fitting=FittingRows("nothing", "position", within=(1, float("inf")))
            ),
            FigureKey("deepest"): RowAggregate(F.max("position"), "max", FittingRows("largest", "position")),
            **_build_time_aggregates(days, date),
        }
    if name == "interactions":
        dwell, usual = F.col("dwell_seconds"), (0, LONGEST_VISIT)
        too_long = dwell > LONGEST_VISIT
        return {
            FigureKey("clicks"): RowAggregate(
                F.count_if(F.col("kind") == "click"), fitting=FittingRows("choice", "kind", choice="click")
            ),
            FigureKey("strange_dwells"): RowAggregate(
                F.count_if(too_long), fitting=FittingRows("nothing", "dwell_seconds", within=usual)
            ),
            **_build_ends("strange_dwells_sample", F.when(too_long, dwell), "dwell_seconds", usual),
            **_build_time_aggregates(days, date),
        }
    if name == "judgments":
        rounded = F.least(F.greatest(F.floor("grade"), F.lit(GRADES[0])), F.lit(GRADES[-1]))
        return {
            FigureKey("grades", str(grade)): RowAggregate(
                F.count_if(rounded == grade), fitting=FittingRows("grades", grade=grade)
            )
            for grade in GRADES
        }
    return {}


def _build_time_aggregates(days: Sequence[str], date: dt.date) -> Aggregates:
    """Implausible times of a log, the newest of the others, and the rows of each day."""
    latest = dt.datetime.combine(date, dt.time(), dt.UTC) + dt.timedelta(days=367)
    micros = F.unix_micros("ts")
    usual = (int(EARLIEST.timestamp() * 1e6), int(latest.timestamp() * 1e6))
    strange = ~micros.between(*usual)
    outside: Aggregates = {FigureKey(OUTSIDE): SplitCount(OUTSIDE, is_other=True)} if days else {}
    return {
        FigureKey("strange_times"): RowAggregate(
            F.count_if(strange), fitting=FittingRows("nothing", "ts", within=usual)
        ),
        **_build_ends("strange_times_sample", F.when(strange, micros / 1e6), "ts", usual),
        FigureKey("newest"): RowAggregate(
            F.max(F.when(~strange, micros) / 1e6), "max", FittingRows("largest", "ts", within=usual, per=1e6)
        ),
        **outside,
        **{FigureKey("days", day): SplitCount(day) for day in days},
    }


def _build_ends(name: str, value: Column, column: str, usual: tuple[float, float]) -> Aggregates:
    """The smallest and the largest value, as a sample of those of a column that are not usual."""
    none = FittingRows("none", column, within=usual)
    return {
        FigureKey(name, end="smallest"): RowAggregate(F.min(value), "min", none),
        FigureKey(name, end="largest"): RowAggregate(F.max(value), "max", none),
    }
