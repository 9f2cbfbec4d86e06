"""The conditions of the gate one by one, and the readings of each candidate."""

from __future__ import annotations

from pipelines.comparison.answers import sort_readings
from pipelines.comparison.verdicts import OUTCOMES
from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, h, text
from pipelines.report.tables import format_segment, render_table

VERDICTS, READINGS = 100, 60
WORDS = {  # class, heading and meaning of a verdict
    "fail": ("fail", "The gate fails", "at least one condition is not met"),
    "undecidable": ("unsure", "The gate cannot decide", "a condition has too little evidence"),
    "pass": ("pass", "The gate passes", "every condition is met"),
}


def render_conditions(data: ReportData) -> Markup | None:
    """Every condition of the gate with its reason, the worst first."""
    verdicts = data.manifest.gate
    if not verdicts:
        return None
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
    columns = ["verdict", "condition", "candidate", "segment", "reason"]
    table = render_table(columns, rows, of=len(verdicts), whole="manifest", stack=True)
    return h("section", h("h2", "Gate"), table, id="gate")


def render_badge(verdict: str) -> Markup:
    """A verdict of the gate as a coloured word."""
    return h("span", verdict, class_=f"badge {WORDS[verdict][0]}")


def render_readings(data: ReportData) -> Markup | None:
    """What the numbers mean, in sentences, for each candidate; the largest risk first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for entry in sort_readings(data.manifest.readings)[:READINGS]:
        groups.setdefault((entry["candidate"], entry["baseline"]), []).append(entry["text"])
    if not groups:
        return None
    effects = {(answer.candidate, answer.baseline): place for place, answer in enumerate(data.answers)}
    blocks = [
        [
            h("h3", text(candidate, 60), " against ", text(baseline, 60)),
            h("ul", [h("li", text(sentence, 600)) for sentence in groups[candidate, baseline]], class_="readings"),
        ]
        for candidate, baseline in sorted(groups, key=lambda pair: effects.get(pair, len(effects)))
    ]
    return h("section", h("h2", "What it means"), blocks, id="readings")
