"""How a log became labels: the propensity curve, the noise that was dropped, the grades, agreement with judges."""

from __future__ import annotations

import math
from typing import Any

from pipelines.labels.agreement import describe_agreement
from pipelines.report.charts import Point, draw_bars, draw_lines, place_ticks
from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, h, text

CONTEXTS, POSITIONS = 8, 50


def render_labels(data: ReportData) -> Markup | None:
    """Charts of the labels, the diagnostics of the curve, and the agreement."""
    summary = data.manifest.labels
    if not data.grades and not summary:
        return None
    earlier = summary.get("from_run")
    return h(
        "section",
        h("h2", "Labels"),
        h("p", "Labels from run ", text(earlier), ".", class_="quiet") if earlier else None,
        h("div", _draw_curves(data), _draw_grades(data), _draw_funnel(data), class_="plots"),
        [
            h("p", "! " if verdict["warning"] else "", text(verdict["sentence"], 500), class_="quiet")
            for verdict in summary.get("verdicts", ())[:20]
        ],
        [h("p", f"{line[0].upper()}{line[1:]}.") for line in describe_agreement(summary.get("agreement"))],
        id="labels",
    )


def _draw_curves(data: ReportData) -> Markup | None:
    contexts = list(dict.fromkeys(row["context"] for row in data.propensities))[:CONTEXTS]
    series = []
    for context in contexts:
        rows = [r for r in data.propensities if r["context"] == context and r["position"] <= POSITIONS]
        points = [
            Point(
                x=r["position"],
                y=r["propensity"],
                low=r["low"],
                high=r["high"],
                hover=f"position {r['position']}: {r['propensity']:.3f}",
            )
            for r in sorted(rows, key=lambda r: int(r["position"]))
        ]
        series.append((context, points))
    positions = [p.x for _, points in series for p in points]
    return draw_lines(series, "Examination probability by position", ticks=place_ticks(positions)) if series else None


def _draw_grades(data: ReportData) -> Markup | None:
    if not data.grades:
        return None
    total = sum(data.grades.values())

    def is_missing(grade: Any) -> bool:
        return grade is None or math.isnan(grade)

    counts = sorted(data.grades.items(), key=lambda item: (item[0][0], is_missing(item[0][1]), item[0][1]))
    rows = []
    for (source, grade), pairs in counts:
        name = f"{source}, {'no grade' if is_missing(grade) else f'grade {grade:g}'}"
        rows.append((name, pairs, f"{pairs:,}", f"{pairs:,} pairs, {pairs / total:.1%}"))
    return draw_bars(rows, f"{total:,} labels by grade")


def _draw_funnel(data: ReportData) -> Markup | None:
    if not data.funnel:
        return None
    rows = [
        (
            row["rule"],
            row["impressions_dropped"] + row["clicks_dropped"],
            f"{row['impressions_dropped']:,} + {row['clicks_dropped']:,}",
            f"{row['impressions_dropped']:,} impressions, {row['clicks_dropped']:,} clicks, "
            f"{row['users_touched']:,} users; {row['only_this_rule']:,} rows by this rule alone",
        )
        for row in data.funnel
    ]
    return draw_bars(rows, "Dropped as noise by rule: impressions + clicks")
