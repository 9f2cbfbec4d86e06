"""One metric over the committed runs, with marks where runs stop being comparable."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow.compute as pc

from pipelines.comparable import incomparable
from pipelines.report.charts import Point, lines
from pipelines.report.markup import Markup, cut, h, text
from pipelines.report.page import page
from pipelines.report.published import Published
from pipelines.report.table import Number, interval, table
from pipelines.runs import Manifest, committed, live
from pipelines.storage import Storage
from schemas.errors import InputError, did_you_mean
from udfs.registry import Spec
from udfs.statistics.plan import EVERYTHING

RUNS = 1000  # dates that are shown, the newest of them


@dataclass(frozen=True)
class Value:
    """A system's mean on one date; `changed` says what is different since the date before."""

    dt: str
    run: str
    mean: float
    low: float | None
    high: float | None
    queries: int
    changed: tuple[str, ...]


@dataclass(frozen=True)
class Trend:
    """The means of some systems over the dates that have a run."""

    metric: str
    segment: str
    value: str
    systems: dict[str, list[Value]]

    def told(self) -> dict[str, Any]:
        """As plain data, for scripts."""
        return asdict(self)


def trend(
    storage: Storage,
    spec: Spec,
    *,
    systems: Sequence[str] = (),
    since: dt.date | None = None,
    segment: str = EVERYTHING,
    value: str = EVERYTHING,
) -> Trend:
    """The live run of every date since then, oldest first; all systems of the newest where none is named."""
    measured = [m for m in committed(storage) if "segment_metrics" in m.tables]
    first = "" if since is None else since.isoformat()
    runs = [m for m in live(measured) if m.dt >= first][:RUNS]
    if not runs:
        late = f" since {since}" if since else ""
        raise InputError(f"there is no run with metrics{late}", where=storage.uri, hint="`assay runs` lists the runs")
    asked = list(systems) or list(runs[0].systems)
    found: dict[str, list[Value]] = {system: [] for system in asked}
    before: dict[str, Manifest] = {}
    for run in reversed(runs):
        where = (pc.field("metric") == spec.key) & (pc.field("segment") == segment) & (pc.field("value") == value)
        rows = Published(storage, run).rows("segment_metrics", most=RUNS, first=lambda row: row["system"], where=where)
        for row in rows:
            system = row["system"]
            if system not in found or row["macro"] is None:
                continue
            changed = tuple(incomparable(before[system], run)) if system in before else ()
            ends = row["macro_low"], row["macro_high"]
            found[system].append(Value(run.dt, run.run, row["macro"], *ends, row["queries"], changed))
            before[system] = run
    empty = [system for system, values in found.items() if not values]
    if empty:
        known = {system for run in runs for system in run.systems}
        what = f"no run has {spec.name} of the system {empty[0]!r}"
        where_in = "" if segment == EVERYTHING else f" in {segment} = {value}"
        raise InputError(what + where_in, where=storage.uri, hint=did_you_mean(empty[0], known))
    return Trend(spec.name, segment, value, found)


def render_trend(found: Trend) -> str:
    """The same as a page."""
    every = sorted({value.dt for values in found.systems.values() for value in values})
    place = {day: dt.date.fromisoformat(day).toordinal() for day in every}
    series = [
        (system, [Point(place[v.dt], v.mean, v.low, v.high, f"{v.dt}: {v.mean:.4f}") for v in values])
        for system, values in found.systems.items()
    ]
    marks = {v.dt: v.changed for values in found.systems.values() for v in values if v.changed}
    step = max(1, -(-len(every) // 4))
    chart = lines(
        series[:8],
        f"{found.metric} by date",
        ticks=[(place[day], day[5:]) for day in every[::step]],
        marks=[(place[day], f"{day}: {'; '.join(reasons)}") for day, reasons in marks.items()],
    )
    rows = [
        [system, v.dt, Number(v.mean, beside=interval(v.low, v.high)), Number(v.queries, ","), _reasons(v), v.run]
        for system, values in found.systems.items()
        for v in values
    ]
    note = "A dashed line marks a change after which the numbers mean something else: do not compare across it."
    sections = [
        h("section", h("h2", "Trend"), h("div", chart), h("p", note, class_="quiet") if marks else None, id="trend"),
        h(
            "section",
            h("h2", "Values"),
            table(["system", "date", "mean", "queries", "changed", "run"], rows),
            id="values",
        ),
    ]
    part = "" if found.segment == EVERYTHING else f" in {cut(found.segment, 60)} = {cut(found.value, 60)}"
    heading = [h("h1", f"Assay, {found.metric}{part}"), h("p", f"{every[0]} to {every[-1]}")]
    return page(f"Assay {found.metric}", heading, sections)


def _reasons(value: Value) -> Markup:
    return text("; ".join(value.changed) or "–", 400)
