"""One metric over the committed runs, with marks where runs stop being comparable."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow.compute as pc

from pipelines.comparison.comparable import find_differences
from pipelines.report.charts import Point, draw_lines
from pipelines.report.markup import Markup, cut, h, text
from pipelines.report.page import render_page
from pipelines.report.tables import Number, format_interval, render_table
from pipelines.warehouse.runs import Manifest, list_committed, select_live
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables
from schemas.errors import InputError, did_you_mean
from udfs.registry import MetricSpec, parse_metrics
from udfs.statistics.plan import EVERYTHING

RUNS = 1000  # dates that are shown, the newest of them


@dataclass(frozen=True)
class TrendValue:
    """A system's mean on one date; `changed` lists what is different since the date before."""

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
    systems: dict[str, list[TrendValue]]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return asdict(self)


def read_trend(
    storage: Storage,
    spec: MetricSpec,
    *,
    systems: Sequence[str] = (),
    since: dt.date | None = None,
    segment: str = EVERYTHING,
    value: str = EVERYTHING,
) -> Trend:
    """The live run of every date from `since` on, oldest first; all systems of the newest run if none is named."""
    with_metrics = [m for m in list_committed(storage) if "segment_metrics" in m.tables]
    first = "" if since is None else since.isoformat()
    runs = [m for m in select_live(with_metrics) if m.dt >= first][:RUNS]
    if not runs:
        late = f" since {since}" if since else ""
        raise InputError(f"there is no run with metrics{late}", where=storage.uri, hint="`assay evaluate` creates one")
    names = list(systems) or list(runs[0].systems)
    trend: dict[str, list[TrendValue]] = {system: [] for system in names}
    before: dict[str, Manifest] = {}
    for run in reversed(runs):
        where = (pc.field("metric") == spec.key) & (pc.field("segment") == segment) & (pc.field("value") == value)
        rows = RunTables(storage, run).rows("segment_metrics", most=RUNS, first=lambda row: row["system"], where=where)
        for row in rows:
            system = row["system"]
            if system not in trend or row["macro"] is None:
                continue
            changed = tuple(find_differences(before[system], run)) if system in before else ()
            trend[system].append(
                TrendValue(
                    dt=run.dt,
                    run=run.run,
                    mean=row["macro"],
                    low=row["macro_low"],
                    high=row["macro_high"],
                    queries=row["queries"],
                    changed=changed,
                )
            )
            before[system] = run
    empty = [system for system, values in trend.items() if not values]
    if empty:
        raise _explain_absence(storage, runs, spec, empty[0], segment, value)
    return Trend(spec.name, segment, value, trend)


def _explain_absence(
    storage: Storage, runs: Sequence[Manifest], spec: MetricSpec, system: str, segment: str, value: str
) -> InputError:
    """What no run has of a system without values: the system itself, the metric, the segment, or a mean in it."""
    evaluated = {name for run in runs for name in run.systems}
    if system not in evaluated:
        return InputError(f"no run has the system {system!r}", where=storage.uri, hint=did_you_mean(system, evaluated))
    where = pc.field("metric") == spec.key
    rows = RunTables(storage, runs[0]).rows("segment_metrics", most=RUNS, first=lambda r: r["segment"], where=where)
    if not rows:
        metrics = {parsed.name for run in runs for parsed in parse_metrics(run.config.get("metrics", ()))}
        hint = did_you_mean(spec.name, metrics)
        return InputError(f"no run has the metric {spec.name}", where=storage.uri, hint=hint)
    names = {row["segment"] for row in rows}
    if segment not in names:
        return InputError(f"no run has the segment {segment!r}", where=storage.uri, hint=did_you_mean(segment, names))
    values = {row["value"] for row in rows if row["segment"] == segment}
    if value not in values:
        hint = did_you_mean(value, values)
        return InputError(f"no run has the value {value!r} of the segment {segment}", where=storage.uri, hint=hint)
    part = "" if segment == EVERYTHING else f" in {segment} = {value}"
    return InputError(
        f"{spec.name} of {system}{part} has no mean in any run",
        where=storage.uri,
        hint="it is undefined for every query there",
    )


def render_trend(trend: Trend) -> str:
    """A trend as a page."""
    days = sorted({value.dt for values in trend.systems.values() for value in values})
    place = {day: dt.date.fromisoformat(day).toordinal() for day in days}
    series = [(system, [_build_point(v, place[v.dt]) for v in values]) for system, values in trend.systems.items()]
    marks = {v.dt: v.changed for values in trend.systems.values() for v in values if v.changed}
    step = max(1, -(-len(days) // 4))
    chart = draw_lines(
        series[:8],
        f"{trend.metric} by date",
        ticks=[(place[day], day[5:]) for day in days[::step]],
        marks=[(place[day], f"{day}: {'; '.join(reasons)}") for day, reasons in marks.items()],
    )
    rows = [
        [
            system,
            v.dt,
            Number(v.mean, beside=format_interval(v.low, v.high)),
            Number(v.queries, ","),
            _render_reasons(v),
            v.run,
        ]
        for system, values in trend.systems.items()
        for v in values
    ]
    note = "A dashed line marks a change of conventions, labels or code: values on its two sides are not comparable."
    sections = [
        h("section", h("h2", "Trend"), h("div", chart), h("p", note, class_="quiet") if marks else None, id="trend"),
        h(
            "section",
            h("h2", "Values"),
            render_table(["system", "date", "mean [CI]", "queries", "changed", "run"], rows),
            id="values",
        ),
    ]
    part = "" if trend.segment == EVERYTHING else f" in {cut(trend.segment, 60)} = {cut(trend.value, 60)}"
    heading = [h("h1", f"Assay, {trend.metric}{part}"), h("p", f"{days[0]} to {days[-1]}")]
    return render_page(f"Assay {trend.metric}", heading, sections)


def _build_point(value: TrendValue, x: float) -> Point:
    return Point(x=x, y=value.mean, low=value.low, high=value.high, hover=f"{value.dt}: {value.mean:.4f}")


def _render_reasons(value: TrendValue) -> Markup:
    return text("; ".join(value.changed) or "–", 400)
