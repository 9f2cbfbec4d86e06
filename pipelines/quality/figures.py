"""Figures of one input that need no shuffle, of all of its rows, those in quarantine too."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.check import Rider
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


def riders(table: Conformed, source: Source, date: dt.date) -> dict[str, Rider]:
    """What the checks want to know of all rows of an input, beyond their number."""
    days = asked_days(source, date) or []
    there = [name for name in _optional(table.table) if name in table.given]
    empty = {f"empty {name}": Rider(F.count_if(F.col(name).isNull())) for name in there}
    return _wanted(table.table.name, days, date) | empty


def figures(ridden: Mapping[str, Any], days: list[str] | None) -> dict[str, Any]:
    """What the riders found: a group of them as a mapping, the ends of strange values as a sample."""
    known: dict[str, Any] = {"window": days} if days else {}
    for name, value in ridden.items():
        group, _, of = name.partition(" ")
        if group.endswith("_sample"):
            known[group] = known.get(group, []) + _sample(value)
        elif of:
            known.setdefault(group, {})[of] = value
        else:
            known[name] = value
    if "grades" in known:
        known["grades"] = {grade: count for grade, count in known["grades"].items() if count}
    return known


def distinct(table: Conformed) -> dict[str, int]:
    """How many queries and pages a log has, about: what cannot be counted in groups takes a pass of its own."""
    if table.table.name != "impressions":
        return {}
    found = table.marked.agg(*[F.approx_count_distinct(name) for name in ("query_id", "serp_id")]).first()
    return {} if found is None else {"queries": found[0], "pages": found[1]}


def _optional(table: Table) -> list[str]:
    """The optional columns; those of which a row needs just one are no sign of anything."""
    return [column.name for column in table.columns if column.optional and column.name not in table.one_of]


def _wanted(name: str, days: Sequence[str], date: dt.date) -> dict[str, Rider]:
    if name == "impressions":
        zero = F.count_if(F.col("position") == 0)
        return {"zero_positions": Rider(zero), "deepest": _largest(F.col("position")), **_times(days, date)}
    if name == "interactions":
        long = F.col("dwell_seconds") > LONGEST_VISIT
        return {
            "clicks": Rider(F.count_if(F.col("kind") == "click")),
            "strange_dwells": Rider(F.count_if(long)),
            **_ends("strange_dwells_sample", F.when(long, F.col("dwell_seconds"))),
            **_times(days, date),
        }
    if name == "judgments":
        near = F.least(F.greatest(F.floor("grade"), F.lit(GRADES[0])), F.lit(GRADES[-1]))
        return {f"grades {grade}": Rider(F.count_if(near == grade)) for grade in GRADES}
    return {}


def _times(days: Sequence[str], date: dt.date) -> dict[str, Rider]:
    """What the times of a log say: the strange ones, the newest of the others, and the rows of each day."""
    latest = dt.datetime.combine(date, dt.time(), dt.UTC) + dt.timedelta(days=367)
    micros = F.unix_micros("ts")
    strange = ~micros.between(int(EARLIEST.timestamp() * 1e6), int(latest.timestamp() * 1e6))
    dates = {day: F.lit(day).cast("date") for day in days}
    outside = {"outside": Rider(F.count_if(~F.to_date("ts").isin(*dates.values())))} if days else {}
    return {
        "strange_times": Rider(F.count_if(strange)),
        **_ends("strange_times_sample", F.when(strange, micros / 1e6)),
        "newest": _largest(F.when(~strange, micros) / 1e6),
        **outside,
        **{f"days {day}": Rider(F.count_if(F.to_date("ts") == of)) for day, of in dates.items()},
    }


def _largest(value: Column) -> Rider:
    return Rider(F.max(value), "max")


def _ends(name: str, value: Column) -> dict[str, Rider]:
    return {f"{name} smallest": Rider(F.min(value), "min"), f"{name} largest": _largest(value)}


def _sample(value: float | None) -> list[str]:
    return [] if value is None else [f"{value:,.0f} s"]
