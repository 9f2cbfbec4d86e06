"""Two runs against each other: the same system on the queries of both, with the numbers of `assay compare`."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pipelines.comparison.comparable import find_differences
from pipelines.comparison.headline import read_shown_metrics
from pipelines.report.charts import draw_differences
from pipelines.report.comparisons import draw_comparisons, list_comparison_cells, list_comparison_columns
from pipelines.report.data import PAIRS, select_headline_keys
from pipelines.report.histograms import DeltaCounts
from pipelines.report.markup import Markup, cut, h, text
from pipelines.report.page import render_page
from pipelines.report.pairs import QueryPairs, pair_queries
from pipelines.report.tables import Number, format_ci, render_table
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables
from schemas.errors import ConfigurationError, InputError, did_you_mean
from udfs.registry import MetricSpec, parse_metric
from udfs.statistics.counting import TIE
from udfs.statistics.plan import EVERYTHING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipelines.comparison.two_runs import RunComparison

MOVERS = 20


@dataclass(frozen=True)
class TwoRunData:
    """What is shown of two runs; all of it counts the same queries."""

    before: Manifest
    after: Manifest
    specs: Sequence[MetricSpec]
    headline: MetricSpec
    comparisons: Mapping[str, RunComparison]  # by system
    deltas: dict[str, DeltaCounts] = field(default_factory=dict)  # of the headline metric, by system
    movers: dict[str, list[tuple[float, str, float, float]]] = field(default_factory=dict)  # by system


def render_two_run_report(
    spark: SparkSession, storage: Storage, runs: tuple[Manifest, Manifest], system: str | None = None
) -> str:
    """The page of two runs against each other: of one system, or of all that both have."""
    from pipelines.comparison.two_runs import compare_runs

    systems = find_common_systems(runs, system)
    comparisons = {name: compare_runs(spark, storage.uri, runs, (name, name)) for name in systems}
    return render_two_runs(gather_two_runs(storage, runs, comparisons))


def find_common_systems(runs: tuple[Manifest, Manifest], system: str | None = None) -> list[str]:
    """The systems of both runs that a page shows, or the one that is named."""
    common = [name for name in runs[1].systems if name in runs[0].systems]
    if system is not None and system not in common:
        hint = did_you_mean(system, common)
        raise ConfigurationError(f"the runs do not both have the system {system!r}", where="--system", hint=hint)
    if not common:
        hint = "`assay compare --system NEW --before-system OLD` compares systems with different names"
        raise InputError("the runs have no system in common", hint=hint)
    return [system] if system else common[:PAIRS]


def gather_two_runs(
    storage: Storage, runs: tuple[Manifest, Manifest], comparisons: Mapping[str, RunComparison]
) -> TwoRunData:
    """Add the histogram of differences and the movers to the comparisons of each system."""
    before, after = runs
    compared = {row["metric"] for comparison in comparisons.values() for row in comparison.comparisons}
    specs = [spec for spec in map(parse_metric, read_shown_metrics(after)) if spec.key in compared]
    if not specs:
        raise InputError("the runs have no metric in common", hint="evaluate one again with the other's metrics")
    keys = select_headline_keys(after, specs) or (specs[0].key,)
    headline = next(spec for spec in specs if spec.key == keys[0])
    data = TwoRunData(before=before, after=after, specs=specs, headline=headline, comparisons=comparisons)
    first, second = (RunTables(storage, run) for run in runs)
    for system, rule in comparisons.items():
        sides = (first, system), (second, system)
        for pairs in pair_queries(*sides, [headline.key], judged=rule.judged, min_judged=rule.min_judged):
            _add_pairs(data, system, pairs)
    return data


def _add_pairs(data: TwoRunData, system: str, pairs: QueryPairs) -> None:
    x, y = pairs.values(data.headline.key)
    data.deltas.setdefault(system, DeltaCounts()).add(x, y)
    queries, change = pairs.frame["query_id"].to_numpy(object), y - x
    size = np.nan_to_num(np.abs(change))
    least = np.partition(size, -MOVERS)[-MOVERS] if len(size) > MOVERS else 0.0
    moved = np.flatnonzero((size > TIE) & (size >= least))
    rows = [(float(change[i]), str(queries[i]), float(x[i]), float(y[i])) for i in moved]
    candidates = [*data.movers.get(system, ()), *rows]
    data.movers[system] = heapq.nsmallest(MOVERS, candidates, key=lambda row: (-abs(row[0]), row[1]))


def render_two_runs(data: TwoRunData) -> str:
    """The page of these data."""
    before, after = data.before, data.after
    heading = [
        h("h1", f"Assay, {after.dt} against {before.dt}"),
        h("p", f"run {after.run} against run {before.run}"),
    ]
    sections = [
        _render_caveats(data),
        _render_overall(data),
        _render_segments(data),
        _render_distribution(data),
        _render_movers(data),
    ]
    return render_page(f"Assay {after.dt} against {before.dt}", heading, sections)


def _render_caveats(data: TwoRunData) -> Markup:
    reasons = find_differences(data.before, data.after)
    if not reasons:
        banner = h("p", "Conventions, labels and code are the same in both runs.", class_="banner pass")
    else:
        items = h("ul", [h("li", text(reason, 300)) for reason in reasons[:40]])
        banner = h("div", h("b", "The runs differ in more than their date."), items, class_="banner unsure")
    return h("section", h("h2", "Are they comparable?"), banner, id="caveats")


def _render_overall(data: TwoRunData) -> Markup:
    rows = [
        [system, spec.name, Number(row["baseline_mean"]), Number(row["candidate_mean"]), *list_comparison_cells(row)]
        for system, comparison in data.comparisons.items()
        for spec in data.specs
        for row in comparison.comparisons
        if row["segment"] == EVERYTHING and row["metric"] == spec.key
    ]
    columns = [
        "system",
        "metric",
        data.before.dt,
        data.after.dt,
        *list_comparison_columns(format_ci(data.after.config)),
    ]
    note = "Paired on the queries that both runs have and that count in both; the same numbers as `assay compare`."
    return h(
        "section", h("h2", "Difference"), h("p", note, class_="quiet"), render_table(columns, rows), id="difference"
    )


def _render_segments(data: TwoRunData) -> Markup | None:
    plots = []
    for system, comparison in data.comparisons.items():
        rows = [row for row in comparison.comparisons if row["metric"] == data.headline.key and row["queries"] > 1]
        rows.sort(key=lambda row: (row["segment"] != EVERYTHING, -row["queries"], row["segment"], row["value"]))
        if len(rows) > 1:
            plots.append(draw_comparisons(rows, f"{cut(system, 60)}: {data.headline.name}"))
    return h("section", h("h2", "By segment"), h("div", plots, class_="plots broad"), id="segments") if plots else None


def _render_distribution(data: TwoRunData) -> Markup:
    plots = [
        draw_differences(d.counts, d.ties, f"{cut(system, 40)}: {data.headline.name}, {d.queries:,} queries")
        for system, d in data.deltas.items()
        if d.queries
    ]
    return h("section", h("h2", "Differences by query"), h("div", plots, class_="plots"), id="distribution")


def _render_movers(data: TwoRunData) -> Markup:
    rows = [
        [system, query, Number(x, ".3f"), Number(y, ".3f"), Number(change, "+.3f", "better" if change > 0 else "worse")]
        for system, movers in data.movers.items()
        for change, query, x, y in movers
    ]
    columns = ["system", "query", data.before.dt, data.after.dt, f"Δ {data.headline.name}"]
    return h("section", h("h2", "Movers"), render_table(columns, rows), id="movers")
