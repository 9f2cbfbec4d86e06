"""How the metrics are distributed over queries, and how they change with the rank cut-off."""

from __future__ import annotations

from collections import defaultdict

from pipelines.report.charts import Point, draw_differences, draw_histogram, draw_lines, place_ticks
from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, cut, h
from pipelines.report.sections.comparison import format_pair

CHARTS = 24
SERIES = 8


def render_distribution(data: ReportData) -> Markup | None:
    """Histograms of the metrics by query, and of the differences over the queries that are compared."""
    histograms = [
        draw_histogram(counts, f"{cut(system, 40)}: {data.name(metric)}")
        for (system, metric), counts in sorted(
            data.histograms.items(), key=lambda item: item[0][1] not in data.headline
        )
        if counts.sum()
    ]
    differences = [
        draw_differences(
            d.counts, d.ties, f"{format_pair(baseline, candidate, 30)}: {data.name(metric)}, {d.queries:,} queries"
        )
        for (baseline, candidate, metric), d in data.deltas.items()
        if d.queries
    ]
    if not histograms:
        return None
    more = len(histograms) - CHARTS
    return h(
        "section",
        h("h2", "Distribution over queries"),
        h("p", "Queries in buckets of 0.1: a mean can hide two groups of queries.", class_="quiet"),
        h("div", histograms[:CHARTS], class_="plots"),
        h("p", f"{more} more systems and metrics are in the table query_metrics.", class_="quiet")
        if more > 0
        else None,
        [h("h3", "Differences by query"), h("div", differences[:CHARTS], class_="plots")] if differences else None,
        id="distribution",
    )


def render_cutoffs(data: ReportData) -> Markup | None:
    """Metrics that were computed at several cut-offs, as lines over them."""
    families: dict[str, list[int]] = defaultdict(list)
    keys = {}
    for spec in data.metrics:
        if spec.k is not None:
            family = spec.name.rpartition("@")[0]
            families[family].append(spec.k)
            keys[family, spec.k] = spec.key
    means = {(row["system"], row["metric"]): row for row in data.overall}
    charts = []
    for family, ks in families.items():
        if len(ks) < 2:
            continue
        series = []
        for system in data.systems[:SERIES]:
            rows = [(k, means.get((system, keys[family, k]))) for k in sorted(ks)]
            points = [
                Point(x=k, y=r["macro"], low=r["macro_low"], high=r["macro_high"], hover=f"@{k}: {r['macro']:.4f}")
                for k, r in rows
                if r is not None and r["macro"] is not None
            ]
            if points:
                series.append((system, points))
        charts.append(draw_lines(series, f"{family} by cut-off", ticks=place_ticks(ks)))
    if not any(charts):
        return None
    return h("section", h("h2", "By rank cut-off"), h("div", charts, class_="plots"), id="cutoffs")
