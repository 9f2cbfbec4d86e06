"""Candidate against baseline, by the run's rule and by every way to count unjudged documents."""

from __future__ import annotations

from pipelines.report.comparisons import (
    LINES,
    build_delta_cell,
    draw_comparisons,
    list_comparison_cells,
    list_comparison_columns,
    measure_comparisons,
)
from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, cut, h
from pipelines.report.sections.verdict import render_badge
from pipelines.report.tables import Number, format_ci, format_segment, render_table
from udfs.conventions import UNJUDGED

COMPARISON_NOTE = (
    "Paired by query. A dot is the mean difference, its bar the confidence interval; the plots of a metric share their "
    "scale, and colour marks differences that are significant after correction for multiple tests. “p (adjusted)” "
    "exists for the rows of that family; “min. detectable Δ” is the smallest true difference that these queries would "
    "detect with 80 % power."
)
UNJUDGED_NOTE = (
    "Labels from behaviour have holes where a document was never shown; the first rule of each pair is the run’s own. "
    "A posterior estimates such documents from their ranks. Removing them after the cut, on queries where enough is "
    "judged, flatters a system that ranks junk. Counting them as 0 favours the system that served the log, removing "
    "them before the cut favours a new one. A difference that holds by every rule does not depend on it."
)


def render_comparison(data: ReportData) -> Markup | None:
    """A forest plot over segments for each pair and headline metric, then every number."""
    if not data.comparisons:
        return None
    plots = []
    for metric in data.headline:
        of_metric = [r for r in data.comparisons if r["metric"] == metric]
        by_pair = {pair: [r for r in of_metric if (r["baseline"], r["candidate"]) == pair] for pair in data.pairs}
        spans = [span for rows in by_pair.values() if (span := measure_comparisons(rows)) is not None]
        span = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
        for pair, rows in by_pair.items():
            plots.append(draw_comparisons(rows, f"{format_pair(*pair)}: {data.name(metric)}", span))
    table = [
        [
            format_pair(row["baseline"], row["candidate"]),
            format_segment(row),
            data.name(row["metric"]),
            *list_comparison_cells(row),
        ]
        for row in data.comparisons
    ]
    columns = ["pair", "segment", "metric", *list_comparison_columns(format_ci(data.manifest.config))]
    return h(
        "section",
        h("h2", "Comparison"),
        h("p", COMPARISON_NOTE, class_="quiet"),
        h("div", plots, class_="plots broad"),
        render_table(columns, table, of=data.sizes.get("comparisons"), whole="comparisons"),
        id="comparison",
    )


def render_sensitivity(data: ReportData) -> Markup | None:
    """The headline comparisons by every way to count unjudged documents, side by side."""
    by_key = {(r["baseline"], r["candidate"], r["metric"], r["unjudged"]): r for r in data.sensitivity}
    if not by_key:
        return None
    effects = {pair: place for place, pair in enumerate(data.pairs)}
    pairs = sorted(dict.fromkeys(key[:3] for key in by_key), key=lambda key: effects.get(key[:2], len(effects)))[:LINES]
    rows = [
        [
            format_pair(baseline, candidate),
            data.name(metric),
            words,
            build_delta_cell(row),
            Number(row["queries"], ","),
            Number(row["kept_traffic"], ".0%"),
            render_badge(row["gate"]) if row["gate"] else "–",
        ]
        for baseline, candidate, metric in pairs
        for way, words in UNJUDGED.items()
        if (row := by_key.get((baseline, candidate, metric, way))) is not None
    ]
    ci = format_ci(data.manifest.config)
    columns = ["pair", "metric", "unjudged documents", f"Δ [{ci}]", "queries", "traffic", "gate"]
    return h(
        "section",
        h("h2", "Unjudged documents"),
        h("p", UNJUDGED_NOTE, class_="quiet"),
        render_table(columns, rows),
        id="unjudged",
    )


def format_pair(baseline: str, candidate: str, most: int = 60) -> str:
    """A compared pair as `candidate − baseline`."""
    return f"{cut(candidate, most)} − {cut(baseline, most)}"
