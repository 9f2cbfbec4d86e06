"""What a run concludes: the gate, the headline, comparisons, readings and the queries that moved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.readings import said_once
from pipelines.report.charts import Interval, forest
from pipelines.report.facts import Facts
from pipelines.report.markup import Markup, cut, h, text
from pipelines.report.published import Row
from pipelines.report.table import Number, interval, table
from udfs.conventions import UNJUDGED
from udfs.statistics.plan import EVERYTHING

VERDICTS, READINGS, LINES = 100, 60, 40
WORDS = {
    "pass": ("pass", "The gate passes", "every condition is met"),
    "fail": ("fail", "The gate fails", "at least one condition is not met"),
    "undecidable": ("unsure", "The gate cannot decide", "a condition has too little evidence"),
}


def verdict(facts: Facts) -> Markup:
    """The answer first: the gate and each system's headline."""
    given = facts.manifest.gate
    worst = next((v for v in ("fail", "undecidable", "pass") if any(g["verdict"] == v for g in given)), None)
    if worst is None:
        banner = h("p", h("b", "No gate"), " — this run has no condition of release.", class_="banner")
    else:
        tone, title, meaning = WORDS[worst]
        banner = h("p", h("b", title), f" — {meaning}.", class_=f"banner {tone}")
    order = {"fail": 0, "undecidable": 1, "pass": 2}
    shown = sorted(given, key=lambda v: order[v["verdict"]])[:VERDICTS]
    lines = [
        [
            h("span", v["verdict"], class_=f"badge {WORDS[v['verdict']][0]}"),
            v["condition"],
            v["candidate"],
            _where(v),
            text(f"{v['reason']}. {v['warning']}" if v["warning"] else v["reason"], 300),
        ]
        for v in shown
    ]
    columns = ["verdict", "condition", "system", "segment", "why"]
    gates = table(columns, lines, of=len(given), whole="manifest") if lines else None
    return h("section", h("h2", "Verdict"), banner, _headline(facts), gates, id="verdict")


def _headline(facts: Facts) -> Markup:
    """The mean of every metric per system, with its interval."""
    values = {(row["system"], row["metric"]): row for row in facts.overall}
    specs = facts.metrics
    rows = []
    for system in facts.systems:
        found = [values.get((system, spec.key)) for spec in specs]
        rows.append([system, *[_mean(row) for row in found], *_counts(found)])
    columns = ["system", *[spec.name for spec in specs], "queries", "skipped"]
    return table(columns, rows, of=len(facts.manifest.systems), whole="segment_metrics")


def _mean(row: Row | None) -> Number:
    if row is None:
        return Number(None)
    return Number(row["macro"], beside=interval(row["macro_low"], row["macro_high"], ".3f"))


def _counts(found: Sequence[Row | None]) -> list[Number]:
    row = next((row for row in found if row is not None), None)
    return [Number(None if row is None else row[name], ",") for name in ("queries", "skipped")]


def readings(facts: Facts) -> Markup | None:
    """What the numbers mean, in sentences."""
    given = said_once(facts.manifest.readings)[:READINGS]
    if not given:
        return None
    lines = [
        h("li", h("b", text(", ".join(candidates)), " against ", text(baseline)), ": ", text(said, 600))
        for candidates, baseline, said in given
    ]
    return h("section", h("h2", "What it means"), h("ul", lines, class_="readings"), id="readings")


def comparison(facts: Facts) -> Markup | None:
    """Candidate against baseline: the forest over segments, then every number."""
    if not facts.compared:
        return None
    plots = []
    for baseline, candidate in facts.pairs:
        for metric in facts.headline:
            mine = [
                r
                for r in facts.compared
                if (r["baseline"], r["candidate"], r["metric"]) == (baseline, candidate, metric)
            ]
            drawn = [r for r in mine if r["delta"] is not None][:LINES]
            if drawn:
                title = f"{cut(candidate, 60)} − {cut(baseline, 60)}: {facts.name(metric)}"
                plots.append(forest([_line(r) for r in drawn], title))
    rows = [
        [
            f"{cut(r['candidate'], 60)} − {cut(r['baseline'], 60)}",
            _where(r),
            facts.name(r["metric"]),
            Number(r["delta"], "+.4f", _tone(r), interval(r["delta_low"], r["delta_high"], "+.4f")),
            Number(r["relative"], "+.1%"),
            Number(r["p_adjusted"] if r["p_adjusted"] is not None else r["p_value"], ".4f"),
            Number(r["wins"], ","),
            Number(r["ties"], ","),
            Number(r["losses"], ","),
            Number(r["queries"], ","),
            Number(r["detectable_delta"], ".4f"),
        ]
        for r in facts.compared
    ]
    columns = ["pair", "segment", "metric", "delta", "relative", "p", "wins", "ties", "losses", "queries", "can see"]
    return h(
        "section",
        h("h2", "Comparison"),
        h(
            "p",
            "Paired by query. A dot is the mean difference, its bar the interval; colour marks what is significant "
            "after correction for many tests. “p” is adjusted where the row is of that family, “can see” the smallest "
            "true difference that these queries would show in 80 % of cases.",
            class_="quiet",
        ),
        h("div", plots, class_="plots broad"),
        table(columns, rows, of=facts.sizes.get("comparisons"), whole="comparisons"),
        id="comparison",
    )


def sensitivity(facts: Facts) -> Markup | None:
    """The headline comparisons by every way to count unjudged documents, side by side."""
    found = {(r["baseline"], r["candidate"], r["metric"], r["unjudged"]): r for r in facts.sensitivity}
    if not found:
        return None
    pairs = list(dict.fromkeys(key[:3] for key in found))[:LINES]
    rows = [
        [
            f"{cut(candidate, 60)} − {cut(baseline, 60)}",
            facts.name(metric),
            words,
            Number(row["delta"], "+.4f", "", interval(row["delta_low"], row["delta_high"], "+.4f")),
            Number(row["queries"], ","),
            Number(row["kept_traffic"], ".0%"),
            h("span", row["gate"], class_=f"badge {WORDS[row['gate']][0]}") if row["gate"] else "–",
        ]
        for baseline, candidate, metric in pairs
        for way, words in UNJUDGED.items()
        for row in [found[baseline, candidate, metric, way]]
    ]
    columns = ["pair", "metric", "unjudged documents", "delta", "queries", "traffic", "gate"]
    return h(
        "section",
        h("h2", "Unjudged documents"),
        h(
            "p",
            "Labels from behaviour have holes where a document was never shown. The run’s rule takes what is unjudged "
            "out after the cut at k, and counts queries where enough is judged. Counting it as 0 favours the system "
            "that served the log, taking it out before the cut favours a newcomer. What holds by all three does not "
            "rest on the rule.",
            class_="quiet",
        ),
        table(columns, rows),
        id="unjudged",
    )


def _line(row: Row) -> Interval:
    said = f"{row['delta']:+.4f} {interval(row['delta_low'], row['delta_high'], '+.4f')}, {row['queries']:,} queries"
    return Interval(
        label=_where(row),
        value=row["delta"],
        low=row["delta_low"],
        high=row["delta_high"],
        shown=f"{row['delta']:+.3f} {interval(row['delta_low'], row['delta_high'], '+.3f')}",
        said=said,
        tone=_tone(row),
    )


def _tone(row: Row) -> str:
    if not row["significant"]:
        return ""
    return "better" if row["delta"] > 0 else "worse"


def _where(row: Mapping[str, Any]) -> str:
    return "all" if row["segment"] == EVERYTHING else f"{row['segment']} = {row['value']}"


def movers(facts: Facts) -> Markup | None:
    """The queries that gained and lost most, with both rankings side by side."""
    if not facts.changes:
        return None
    blocks: list[Markup | None] = []
    groups = dict.fromkeys((r["baseline"], r["candidate"], r["metric"]) for r in facts.changes)
    for baseline, candidate, metric in groups:
        title = f"{cut(candidate, 60)} − {cut(baseline, 60)}: {facts.name(metric)}"
        mine = [
            r for r in facts.changes if (r["baseline"], r["candidate"], r["metric"]) == (baseline, candidate, metric)
        ]
        for direction, said in (("loss", "lost most"), ("gain", "gained most")):
            moved = sorted((r for r in mine if r["direction"] == direction), key=lambda r: int(r["place"]))
            blocks.append(h("h3", f"{title}, {said}") if moved else None)
            blocks += [_moved(row, baseline, candidate) for row in moved]
    return h("section", h("h2", "Movers"), blocks, id="movers")


def _moved(row: Row, baseline: str, candidate: str) -> Markup:
    tone = "better" if row["delta"] > 0 else "worse"
    title = h(
        "summary",
        h("span", f"{row['delta']:+.3f}", class_=f"n {tone}"),
        text(row["query_id"]),
        h("small", f" {row['baseline_value']:.3f} → {row['candidate_value']:.3f}, weight {row['weight']:,.0f}"),
    )
    lists = [
        _ranking(name, row.get(column)) for name, column in ((baseline, "baseline_top"), (candidate, "candidate_top"))
    ]
    side = h("div", lists, class_="sides") if any(lists) else None
    moved = h("p", text(row["moved"], 500), class_="quiet") if row["moved"] else None
    return h("details", title, side, moved)


def _ranking(system: str, top: str | None) -> Markup | None:
    """The best documents of a list, each with its grade; `top` is JSON as `query_changes` has it."""
    if top is None:
        return None
    lines = []
    for entry in json.loads(top):
        grade = entry.get("grade")
        mark = h(
            "span", "?" if grade is None else f"{grade:g}", class_=f"grade g{0 if not grade else min(3, int(grade))}"
        )
        lines.append(h("li", mark, text(entry["doc_id"], 60)))
    return h("div", h("h4", text(system, 60)), h("ol", lines) if lines else h("p", "nothing returned", class_="quiet"))
