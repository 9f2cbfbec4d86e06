"""Figures of one input that need no shuffle: one aggregate over all of its rows, those in quarantine too."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.config import Source
from pipelines.read import window
from schemas.conform import Conformed
from schemas.table import Table

EARLIEST = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
LONGEST_VISIT = 86_400  # seconds; more is in another unit
GRADES = range(-1, 11)  # human grades are counted by whole numbers, the last ones with all beyond them


def asked_days(source: Source, date: dt.date) -> list[str] | None:
    """The days that the configuration asks of an input; None where it names none."""
    dated = "{date}" in (source.path or "") or "{date}" in (source.where or "")
    return [day.isoformat() for day in window(date, source.days)] if dated else None


def figures(table: Conformed, given: Collection[str], source: Source, date: dt.date) -> dict[str, Any]:
    """What the checks want to know of an input that has the columns `given`, beyond the count of its rows."""
    days = asked_days(source, date)
    optional = [name for name in _optional(table.table) if source.columns.get(name, name) in given]
    wanted = _wanted(table.table.name, days or [], date) | _empty(optional)
    found = table.marked.agg(*[value.alias(name) for name, value in wanted.items()]).first() if wanted else None
    row = {} if found is None else found.asDict()
    known: dict[str, Any] = {"window": days} if days else {}
    if "empty" in row:
        row["empty"] = dict(zip(optional, row["empty"], strict=True))
    if "days" in row:
        row["days"] = dict(zip(days or [], row["days"], strict=True))
    if "grades" in row:
        row["grades"] = {str(grade): count for grade, count in zip(GRADES, row["grades"], strict=True) if count}
    if not days:
        row.pop("days", None)
        row.pop("outside", None)
    return known | {name: _samples(value) if name.endswith("_sample") else value for name, value in row.items()}


def _optional(table: Table) -> list[str]:
    """The optional columns; those of which a row needs just one are no sign of anything."""
    return [column.name for column in table.columns if column.optional and column.name not in table.one_of]


def _empty(columns: Sequence[str]) -> dict[str, Column]:
    return {"empty": F.array(*[F.count_if(F.col(name).isNull()) for name in columns])} if columns else {}


def _wanted(name: str, days: Sequence[str], date: dt.date) -> dict[str, Column]:
    if name == "impressions":
        return {
            "zero_positions": F.count_if(F.col("position") == 0),
            "deepest": F.max("position"),
            "queries": F.approx_count_distinct("query_id"),
            "pages": F.approx_count_distinct("serp_id"),
            **_times(days, date),
        }
    if name == "interactions":
        long = F.col("dwell_seconds") > LONGEST_VISIT
        return {
            "clicks": F.count_if(F.col("kind") == "click"),
            "strange_dwells": F.count_if(long),
            "strange_dwells_sample": _ends(F.when(long, F.col("dwell_seconds"))),
            **_times(days, date),
        }
    if name == "judgments":
        near = F.least(F.greatest(F.floor("grade"), F.lit(GRADES[0])), F.lit(GRADES[-1]))
        return {"grades": F.array(*[F.count_if(near == grade) for grade in GRADES])}
    return {}


def _times(days: Sequence[str], date: dt.date) -> dict[str, Column]:
    """What the times of a log say: the strange ones, the newest of the others, and the rows of each day."""
    latest = dt.datetime.combine(date, dt.time(), dt.UTC) + dt.timedelta(days=367)
    micros = F.unix_micros("ts")
    strange = ~micros.between(int(EARLIEST.timestamp() * 1e6), int(latest.timestamp() * 1e6))
    day = F.to_date("ts")
    return {
        "strange_times": F.count_if(strange),
        "strange_times_sample": _ends(F.when(strange, micros / 1e6)),
        "newest": F.max(F.when(~strange, micros)) / 1e6,
        "outside": F.count_if(~day.isin([F.lit(d).cast("date") for d in days])) if days else F.lit(None),
        "days": F.array(*[F.count_if(day == F.lit(d).cast("date")) for d in days]),
    }


def _ends(value: Column) -> Column:
    return F.array(F.min(value), F.max(value))


def _samples(values: Sequence[float | None]) -> list[str]:
    return list(dict.fromkeys(f"{value:,.0f} s" for value in values if value is not None))
