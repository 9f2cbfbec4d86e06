"""Two runs against each other: the same system on the queries that both have, from the published tables."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from pipelines.comparable import incomparable
from pipelines.report.charts import Interval, differences, forest
from pipelines.report.facts import METRICS, PAIRS, headlines
from pipelines.report.markup import Markup, cut, h, text
from pipelines.report.page import page
from pipelines.report.published import Published
from pipelines.report.spread import Deltas, paired
from pipelines.report.table import Number, interval, table
from pipelines.runs import Manifest
from schemas.errors import ConfigurationError, InputError, did_you_mean
from udfs.registry import Spec, parse

MOVERS, VALUES = 20, 40
Key = tuple[str, str, str, str]  # system, metric, segment, value


@dataclass
class Between:
    """What is shown of two runs."""

    before: Manifest
    after: Manifest
    specs: Sequence[Spec]
    systems: Sequence[str]
    headline: Sequence[str]
    deltas: dict[Key, Deltas] = field(default_factory=dict)
    movers: dict[str, list[tuple[float, str, float, float]]] = field(default_factory=dict)  # by system

    def of(self, system: str, metric: str, segment: str, value: str) -> Deltas:
        return self.deltas.setdefault((system, metric, segment, value), Deltas())


def gather_two(before: Published, after: Published, system: str | None = None) -> Between:
    """Pair the runs' queries, system by system, and count."""
    first, second = before.manifest, after.manifest
    names = [name for name in second.config["metrics"] if name in first.config["metrics"]]
    specs = [spec for spec in map(parse, names) if spec.metric.scope != "system"][:METRICS]
    common = [name for name in second.systems if name in first.systems]
    if system is not None and system not in common:
        hint = did_you_mean(system, common)
        raise ConfigurationError(f"the runs do not both have the system {system!r}", where="--system", hint=hint)
    if not specs or not common:
        raise InputError("the runs have no metric or no system in common", hint="evaluate one of them again")
    keys = [spec.key for spec in specs]
    headline = [key for key in headlines(second) if key in keys] or keys[:1]
    found = Between(first, second, specs, [system] if system else common[:PAIRS], headline)
    segments = [columns[0] for columns in second.config.get("segments", ()) if len(columns) == 1]
    for name in found.systems:
        for both in paired((before, name), (after, name), [*keys, *segments]):
            _count(found, name, both, segments)
    return found


def _count(found: Between, system: str, both: pd.DataFrame, segments: Sequence[str]) -> None:
    for spec in found.specs:
        before, after = (both[f"{spec.key}_{side}"].to_numpy(float) for side in ("x", "y"))
        found.of(system, spec.key, "all", "all").add(before, after)
    metric = found.headline[0]
    for segment in (name for name in segments if f"{name}_y" in both):
        for value, mine in both.groupby(f"{segment}_y"):
            here = (mine[f"{metric}_{side}"].to_numpy(float) for side in ("x", "y"))
            found.of(system, metric, segment, str(value)).add(*here)
    moved = both[["query_id", f"{metric}_x", f"{metric}_y"]].dropna()
    change = moved[f"{metric}_y"] - moved[f"{metric}_x"]
    largest = moved.loc[change.abs().nlargest(MOVERS).index]
    rows = [(float(y - x), str(q), float(x), float(y)) for q, x, y in largest.itertuples(index=False) if x != y]
    kept = found.movers.get(system, [])
    found.movers[system] = heapq.nlargest(MOVERS, [*kept, *rows], key=lambda row: abs(row[0]))


def render_two(found: Between) -> str:
    """The page that tells it."""
    before, after = found.before, found.after
    heading = [
        h("h1", f"Assay, {after.dt} against {before.dt}"),
        h("p", f"run {after.run} against run {before.run}"),
    ]
    sections = [_caveats(found), _overall(found), _segments(found), _spread(found), _moved(found)]
    return page(f"Assay {after.dt} against {before.dt}", heading, sections)


def _caveats(found: Between) -> Markup:
    reasons = incomparable(found.before, found.after)
    if not reasons:
        banner = h("p", "Conventions, labels and code are the same in both runs.", class_="banner pass")
    else:
        lines = h("ul", [h("li", text(reason, 300)) for reason in reasons[:40]])
        banner = h("div", h("b", "These runs differ in more than their date."), lines, class_="banner unsure")
    return h("section", h("h2", "Can they be compared?"), banner, id="caveats")


def _overall(found: Between) -> Markup:
    rows = []
    for system in found.systems:
        for spec in found.specs:
            d = found.of(system, spec.key, "all", "all")
            mean, low, high = d.interval(_confidence(found)) or (None, None, None)
            tone = "" if low is None or high is None or low <= 0 <= high else "better" if low > 0 else "worse"
            sides = [Number(total / d.queries if d.queries else None) for total in (d.before, d.after)]
            counts = [Number(n, ",") for n in (d.wins, d.ties, d.losses, d.queries)]
            delta = Number(mean, "+.4f", tone, interval(low, high, "+.4f"))
            rows.append([system, spec.name, *sides, delta, *counts])
    columns = ["system", "metric", found.before.dt, found.after.dt, "delta", "wins", "ties", "losses", "queries"]
    note = "On the queries that both runs have, with paired t intervals."
    return h("section", h("h2", "Difference"), h("p", note, class_="quiet"), table(columns, rows), id="difference")


def _segments(found: Between) -> Markup | None:
    plots = []
    for system in found.systems:
        mine = [(k, d) for k, d in found.deltas.items() if k[:2] == (system, found.headline[0]) and d.queries > 1]
        mine.sort(key=lambda item: (item[0][2] != "all", -item[1].queries))
        lines = [_line(key, d, _confidence(found)) for key, d in mine[:VALUES]]
        if len(lines) > 1:
            plots.append(forest(lines, f"{cut(system, 60)}: {_name(found)}"))
    return h("section", h("h2", "By segment"), h("div", plots, class_="plots broad"), id="segments") if plots else None


def _line(key: Key, d: Deltas, confidence: float) -> Interval:
    mean, low, high = d.interval(confidence) or (0.0, 0.0, 0.0)
    tone = "" if low <= 0 <= high else "better" if low > 0 else "worse"
    label = "all" if key[2] == "all" else f"{key[2]} = {key[3]}"
    said = f"{mean:+.4f} {interval(low, high, '+.4f')}, {d.queries:,} queries"
    return Interval(label, mean, low, high, f"{mean:+.3f} {interval(low, high, '+.3f')}", said, tone)


def _spread(found: Between) -> Markup:
    drawn = [
        differences(d.counts, d.ties, f"{cut(system, 40)}: {_name(found)}, {d.queries:,} queries")
        for system in found.systems
        if (d := found.of(system, found.headline[0], "all", "all")).queries
    ]
    return h("section", h("h2", "Differences by query"), h("div", drawn, class_="plots"), id="distribution")


def _moved(found: Between) -> Markup:
    rows = [
        [system, query, Number(x, ".3f"), Number(y, ".3f"), Number(change, "+.3f", "better" if change > 0 else "worse")]
        for system in found.systems
        for change, query, x, y in found.movers.get(system, ())
    ]
    columns = ["system", "query", found.before.dt, found.after.dt, _name(found)]
    return h("section", h("h2", "Movers"), table(columns, rows), id="movers")


def _name(found: Between) -> str:
    return next(spec.name for spec in found.specs if spec.key == found.headline[0])


def _confidence(found: Between) -> float:
    return float(found.after.config.get("statistics", {}).get("confidence", 0.95))
