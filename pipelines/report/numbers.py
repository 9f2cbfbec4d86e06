"""How the numbers spread: over queries, over cut-offs, over segments."""

from __future__ import annotations

from collections import defaultdict

from pipelines.report.charts import Point, differences, histogram, lines, whole_numbers
from pipelines.report.facts import Facts
from pipelines.report.markup import Markup, cut, h
from pipelines.report.table import Number, interval, table

CHARTS = 24
EVERY = "Every query with two values is counted, also where comparisons leave it out for too little of it is judged."
SERIES = 8


def distribution(facts: Facts) -> Markup | None:
    """Histograms of the metrics by query, and of the differences."""
    drawn = [
        histogram(counts, f"{cut(system, 40)}: {facts.name(metric)}")
        for (system, metric), counts in sorted(facts.spreads.items(), key=lambda item: item[0][1] not in facts.headline)
        if counts.sum()
    ]
    moved = [
        differences(
            d.counts, d.ties, f"{cut(candidate, 30)} − {cut(baseline, 30)}: {facts.name(metric)}, {d.queries:,} queries"
        )
        for (baseline, candidate, metric), d in facts.deltas.items()
        if d.queries
    ]
    if not drawn:
        return None
    more = len(drawn) - CHARTS
    return h(
        "section",
        h("h2", "Distribution over queries"),
        h("p", "Queries in buckets of 0.1; a mean can hide two kinds of query.", class_="quiet"),
        h("div", drawn[:CHARTS], class_="plots"),
        h("p", f"{more} more systems and metrics are in the table query_metrics.", class_="quiet")
        if more > 0
        else None,
        [h("h3", "Differences by query"), h("p", EVERY, class_="quiet"), h("div", moved[:CHARTS], class_="plots")]
        if moved
        else None,
        id="distribution",
    )


def cutoffs(facts: Facts) -> Markup | None:
    """A metric that was computed at several cut-offs, drawn over them."""
    families: dict[str, list[int]] = defaultdict(list)
    keys = {}
    for spec in facts.metrics:
        if spec.k is not None:
            family = spec.name.rpartition("@")[0]
            families[family].append(spec.k)
            keys[family, spec.k] = spec.key
    values = {(row["system"], row["metric"]): row for row in facts.overall}
    drawn = []
    for family, ks in families.items():
        if len(ks) < 2:
            continue
        series = []
        for system in facts.systems[:SERIES]:
            rows = [(k, values.get((system, keys[family, k]))) for k in sorted(ks)]
            points = [
                Point(k, r["macro"], r["macro_low"], r["macro_high"], f"@{k}: {r['macro']:.4f}")
                for k, r in rows
                if r is not None and r["macro"] is not None
            ]
            if points:
                series.append((system, points))
        drawn.append(lines(series, f"{family} by cut-off", ticks=whole_numbers(ks)))
    if not any(drawn):
        return None
    return h("section", h("h2", "By rank cut-off"), h("div", drawn, class_="plots"), id="cutoffs")


def segments(facts: Facts) -> Markup | None:
    """Every segment's averages, to be sorted and searched."""
    if not facts.segments:
        return None
    rows = [
        [
            row["system"],
            f"{row['segment']} = {row['value']}",
            facts.name(row["metric"]),
            Number(row["macro"], beside=interval(row["macro_low"], row["macro_high"], ".3f")),
            Number(row["weighted"]),
            Number(row["stddev"]),
            Number(row["queries"], ","),
            Number(row["skipped"], ","),
        ]
        for row in facts.segments
    ]
    columns = ["system", "segment", "metric", "mean", "weighted by traffic", "spread", "queries", "skipped"]
    whole = facts.sizes.get("segment_metrics", 0) - len(facts.overall)
    return h("section", h("h2", "Segments"), table(columns, rows, of=whole, whole="segment_metrics"), id="segments")
