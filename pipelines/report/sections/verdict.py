"""The answer first: the gate, the means of every system, and the readings."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.comparison.answers import answer_comparisons
from pipelines.comparison.headline import list_mean_forms, name_mean
from pipelines.comparison.readings.published import merge_equal_readings
from pipelines.comparison.verdicts import OUTCOMES, find_worst_outcome
from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, h, text
from pipelines.report.tables import Number, format_ci, format_interval, format_segment, render_table
from pipelines.warehouse.tables import Row

VERDICTS, READINGS = 100, 60
WORDS = {  # class, heading and meaning of a verdict
    "fail": ("fail", "The gate fails", "at least one condition is not met"),
    "undecidable": ("unsure", "The gate cannot decide", "a condition has too little evidence"),
    "pass": ("pass", "The gate passes", "every condition is met"),
}


def render_verdict(data: ReportData) -> Markup:
    """The gate's verdict, each system's means, and the conditions one by one."""
    verdicts = data.manifest.gate
    worst = find_worst_outcome(v["verdict"] for v in verdicts)
    if worst not in WORDS:
        banner = h("p", h("b", "No gate"), " — no release condition is configured.", class_="banner")
    else:
        tone, title, meaning = WORDS[worst]
        banner = h("p", h("b", title), f" — {meaning}.", class_=f"banner {tone}")
    rows = [
        [
            render_badge(v["verdict"]),
            v["condition"],
            v["candidate"],
            format_segment(v),
            text(f"{v['reason']}. {v['warning']}" if v["warning"] else v["reason"], 300),
        ]
        for v in sorted(verdicts, key=lambda v: -OUTCOMES.index(v["verdict"]))[:VERDICTS]
    ]
    columns = ["verdict", "condition", "system", "segment", "reason"]
    conditions = render_table(columns, rows, of=len(verdicts), whole="manifest") if rows else None
    return h(
        "section", h("h2", "Verdict"), banner, _render_answers(data), _render_means(data), conditions, id="verdict"
    )


def _render_answers(data: ReportData) -> Markup | None:
    """The verdict on each candidate in one sentence, and what to do."""
    answers = answer_comparisons(data.manifest, data.comparisons)[:VERDICTS]
    items = [h("li", h("b", text(answer.sentence, 400)), " ", text(answer.advice, 400)) for answer in answers]
    return h("ul", items, class_="readings") if items else None


def render_badge(verdict: str) -> Markup:
    """A verdict of the gate as a coloured word."""
    return h("span", verdict, class_=f"badge {WORDS[verdict][0]}")


def _render_means(data: ReportData) -> Markup:
    """The mean of every metric per system, with its interval."""
    by_key = {(row["system"], row["metric"]): row for row in data.overall}
    # Sums of gains are also shown over searches: there, frequent queries count as often as they are searched.
    cells = [(spec, form) for spec in data.metrics for form in list_mean_forms(spec)]
    rows = []
    for system in data.systems:
        means = [by_key.get((system, spec.key)) for spec, _ in cells]
        shown = [_build_mean(row, form) for row, (_, form) in zip(means, cells, strict=True)]
        rows.append([system, *shown, *_count_queries(means)])
    columns = ["system", *[name_mean(spec, form) for spec, form in cells], "queries", "skipped"]
    note = h("p", f"Means over queries with their {format_ci(data.manifest.config)}.", class_="quiet")
    return h("div", note, render_table(columns, rows, of=len(data.manifest.systems), whole="segment_metrics"))


def _build_mean(row: Row | None, form: str) -> Number:
    if row is None:
        return Number(None)
    return Number(row[form], beside=format_interval(row[f"{form}_low"], row[f"{form}_high"], ".3f"))


def _count_queries(means: Sequence[Row | None]) -> list[Number]:
    row = next((row for row in means if row is not None), None)
    return [Number(None if row is None else row[name], ",") for name in ("queries", "skipped")]


def render_readings(data: ReportData) -> Markup | None:
    """What the numbers mean, in sentences."""
    readings = merge_equal_readings(data.manifest.readings)[:READINGS]
    if not readings:
        return None
    items = [
        h("li", h("b", text(", ".join(candidates)), " against ", text(baseline)), ": ", text(sentence, 600))
        for candidates, baseline, sentence in readings
    ]
    return h("section", h("h2", "What it means"), h("ul", items, class_="readings"), id="readings")
