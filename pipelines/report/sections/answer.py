"""The answer on one page: the verdicts, the effects, what they rest on, the queries that moved, and what to do."""

from __future__ import annotations

from pipelines.comparison.answers import CandidateAnswer, sort_readings
from pipelines.comparison.verdicts import find_worst_outcome
from pipelines.report.charts import Interval, draw_forest, draw_share
from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, cut, h, text
from pipelines.report.sections.movers import render_change
from pipelines.report.sections.verdict import WORDS
from pipelines.report.tables import format_interval, render_table
from pipelines.warehouse.tables import Row

CARDS, CAUTIONS, MOVERS = 40, 1, 3
CANDIDATES = 3  # whose movers are on the first page
OUTCOMES = {  # class and words of an outcome
    "better": ("pass", "Better"),
    "worse": ("fail", "Worse"),
    "unclear": ("", "No clear difference"),
    "undecidable": ("unsure", "Undecidable"),
    "empty": ("fail", "Not comparable"),
}
COVERAGE_NOTE = (
    "“With a label” is the share of the top results that has a label, for the baseline and for the candidate. “Shown "
    "to nobody” is the weight of the candidate’s top results on documents that nobody was shown: a model decides there."
)


def render_answer(data: ReportData) -> Markup:
    """Everything that a reader needs to decide; the sections below have the detail."""
    return h(
        "section",
        h("h2", "Answer"),
        _render_gate(data),
        h("div", [_render_card(data, answer) for answer in data.answers[:CARDS]], class_="cards"),
        h("p", "No systems are compared: compare.baseline is not set.", class_="quiet") if not data.answers else None,
        _draw_effects(data),
        _render_coverage(data),
        _render_top_movers(data),
        id="answer",
    )


def _render_gate(data: ReportData) -> Markup | None:
    worst = find_worst_outcome(verdict["verdict"] for verdict in data.manifest.gate)
    if worst not in WORDS:
        return None
    tone, title, meaning = WORDS[worst]
    return h("p", h("b", title), f": {meaning}.", class_=f"banner {tone}")


def _render_card(data: ReportData, answer: CandidateAnswer) -> Markup:
    """The verdict on one candidate, what to do, and the largest risk; "What it means" explains it."""
    tone, words = OUTCOMES[answer.outcome]
    pair = (answer.baseline, answer.candidate)
    readings = [r for r in data.manifest.readings if (r["baseline"], r["candidate"]) == pair]
    risks = [r["text"].partition(". ")[0].rstrip(".") for r in sort_readings(readings)[:CAUTIONS]]
    cautions = [h("li", text(f"{risk}.", 600)) for risk in risks]
    return h(
        "article",
        h("p", h("span", words, class_=f"badge {tone}".strip())),
        h("p", h("b", text(_join_percent(answer.sentence), 400)), class_="lead"),
        h("p", h("b", "What to do: "), text(answer.advice, 400)),
        h("ul", cautions, class_="readings") if cautions else None,
        class_=f"card {tone}".strip(),
    )


def _join_percent(sentence: str) -> str:
    """Keep a number and its % sign on one line."""
    return sentence.replace(" %", "\N{NO-BREAK SPACE}%")


def _draw_effects(data: ReportData) -> Markup | None:
    """Every candidate by the headline metric, on one scale."""
    lines = [_build_line(answer) for answer in data.answers[:CARDS] if answer.delta is not None]
    if not lines:
        return None
    first = data.answers[0]
    alone = len({answer.baseline for answer in data.answers}) == 1
    than = cut(first.baseline, 30) if alone else "baseline"
    title = f"Difference in {first.metric} from {than}, with its interval"
    return draw_forest(lines, title, sides=(f"← worse than {than}", f"better than {than} →"))


def _build_line(answer: CandidateAnswer) -> Interval:
    delta, interval = answer.delta or 0.0, format_interval(answer.low, answer.high, "+.3f")
    tones = {"better": "better", "worse": "worse"}
    return Interval(
        label=answer.candidate,
        value=delta,
        low=answer.low,
        high=answer.high,
        beside=f"{delta:+.3f} {interval}",
        hover=f"{cut(answer.candidate, 60)}: {delta:+.4f} {interval}",
        tone=tones.get(answer.outcome, ""),
    )


def _render_coverage(data: ReportData) -> Markup | None:
    """How much of the queries, the traffic and the lists each comparison covers."""
    if not data.answers:
        return None
    rows = {(r["baseline"], r["candidate"], r["metric"], r["segment"]): r for r in data.comparisons}
    key = data.headline[0]
    unseen = {(a.baseline, a.candidate): rows.get((a.baseline, a.candidate, key, "all"), {}) for a in data.answers}
    columns = {
        "queries compared": [
            _draw_part(a.queries / a.every if a.every else 0.0, f"{a.queries:,} of {a.every:,}") for a in data.answers
        ],
        "traffic": [_draw_part(a.traffic) for a in data.answers],
        "with a label": [_draw_labelled(data, a) for a in data.answers],
        "shown to nobody": [_draw_part(unseen[a.baseline, a.candidate].get("unseen_weight")) for a in data.answers],
    }
    shown = {name: cells for name, cells in columns.items() if any(cell is not None for cell in cells)}
    lines = [
        [f"{cut(a.candidate, 60)} − {cut(a.baseline, 60)}", *(cells[place] for cells in shown.values())]
        for place, a in enumerate(data.answers[:CARDS])
    ]
    note = h("p", COVERAGE_NOTE, class_="quiet") if {"with a label", "shown to nobody"} & set(shown) else None
    return h("div", h("h3", "Coverage"), render_table(["pair", *shown], lines, stack=True), note)


def _draw_part(share: float | None, words: str = "") -> Markup | None:
    if share is None:
        return None
    return h("span", draw_share(share, f"{share:.0%}"), h("span", words or f"{share:.0%}", class_="n"), class_="part")


def _draw_labelled(data: ReportData, answer: CandidateAnswer) -> Markup | None:
    before, after = (data.judged.get(system) for system in (answer.baseline, answer.candidate))
    if before is None or after is None:
        return None
    return _draw_part(after, f"{before:.0%} → {after:.0%}")


def _render_top_movers(data: ReportData) -> Markup | None:
    """The largest losses and gains of the first candidates, with the query and both lists."""
    blocks: list[Markup] = []
    for answer in data.answers[:CANDIDATES]:
        key = (answer.baseline, answer.candidate, data.headline[0])
        rows = [r for r in data.changes if (r["baseline"], r["candidate"], r["metric"]) == key]
        sides = [
            _render_side(words, [row for row in rows if row["direction"] == direction], first=not blocks)
            for direction, words in (("loss", "Got worse"), ("gain", "Got better"))
        ]
        if any(sides):
            title = f"{cut(answer.candidate, 60)} against {cut(answer.baseline, 60)}, {answer.metric}"
            blocks += [h("h4", title), h("div", sides, class_="sides")]
    return h("div", h("h3", "Queries that moved most"), blocks) if blocks else None


def _render_side(words: str, rows: list[Row], *, first: bool) -> Markup | None:
    rows = sorted(rows, key=lambda row: int(row["place"]))[:MOVERS]
    changes = [render_change(row, is_open=first and place == 0) for place, row in enumerate(rows)]
    return h("div", h("h4", words), changes) if rows else None
