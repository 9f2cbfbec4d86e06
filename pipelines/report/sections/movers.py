"""The queries that gained and lost most, with both rankings side by side."""

from __future__ import annotations

import json

from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, h, text
from pipelines.report.sections.comparison import format_pair
from pipelines.warehouse.tables import Row


def render_movers(data: ReportData) -> Markup | None:
    """Per pair and metric, the losses and then the gains, each largest first."""
    if not data.changes:
        return None
    blocks: list[Markup | None] = []
    keys = {(r["baseline"], r["candidate"], r["metric"]) for r in data.changes}
    effects = {pair: place for place, pair in enumerate(data.pairs)}
    for key in sorted(keys, key=lambda key: (effects.get(key[:2], len(effects)), key)):
        baseline, candidate, metric = key
        title = f"{format_pair(baseline, candidate)}: {data.name(metric)}"
        changes = [r for r in data.changes if (r["baseline"], r["candidate"], r["metric"]) == key]
        for direction, words in (("loss", "largest losses"), ("gain", "largest gains")):
            moved = sorted((r for r in changes if r["direction"] == direction), key=lambda r: int(r["place"]))
            blocks.append(h("h3", f"{title}, {words}") if moved else None)
            blocks += [render_change(row) for row in moved]
    return h("section", h("h2", "Movers"), blocks, id="movers")


def render_change(row: Row, *, is_open: bool = False) -> Markup:
    """One query: its text and the change, and both lists below."""
    tone = "better" if row["delta"] > 0 else "worse"
    query = row.get("query")
    title = h(
        "summary",
        h("span", f"{row['delta']:+.3f}", class_=f"n {tone}"),
        h("span", text(query or row["query_id"]), h("small", " ", text(row["query_id"], 60)) if query else None),
        h("small", f" {row['baseline_value']:.3f} → {row['candidate_value']:.3f}, weight {row['weight']:,.0f}"),
    )
    sides = ((row["baseline"], "baseline_top"), (row["candidate"], "candidate_top"))
    lists = [_render_ranking(system, row.get(column)) for system, column in sides]
    side = h("div", lists, class_="sides") if any(lists) else None
    moved = h("p", text(row["moved"], 500), class_="quiet") if row["moved"] else None
    return h("details", title, side, moved, open="" if is_open else None)


def _render_ranking(system: str, top: str | None) -> Markup | None:
    """The top documents of a list, each with its grade; `top` is JSON as in `query_changes`."""
    if top is None:
        return None
    items = []
    for entry in json.loads(top):
        grade = entry.get("grade")
        mark = h(
            "span", "?" if grade is None else f"{grade:g}", class_=f"grade g{0 if not grade else min(3, int(grade))}"
        )
        title = entry.get("title")
        name = [text(title, 80), h("small", " ", text(entry["doc_id"], 60))] if title else text(entry["doc_id"], 60)
        items.append(h("li", mark, name))
    return h("div", h("h4", text(system, 60)), h("ol", items) if items else h("p", "empty list", class_="quiet"))
