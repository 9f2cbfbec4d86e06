"""Tell how a list earned its metrics, or why a document has its grade: `assay explain`."""

from __future__ import annotations

import json
from typing import Any

import click

from jobs.options import Date, debug, output, warehouse


@click.command("explain")
@warehouse
@click.option("--query", required=True, help="The query_id.")
@click.option("--system", "systems", multiple=True, help="A system whose list to explain; two stand side by side.")
@click.option("--doc", help="One document's label; all of the query's where not given.")
@click.option("--date", type=Date(), help="The date of the run; the newest where not given.")
@click.option("--run", help="The run; the newest of the date where not given.")
@click.option("--metric", help="The metric whose gains are shown rank by rank; the first of the run where not given.")
@output
@debug
def command(
    warehouse: str,
    query: str,
    systems: tuple[str, ...],
    doc: str | None,
    date: object,
    run: str | None,
    metric: str | None,
    output: str,
) -> None:
    """Tell how a list earned its metrics, or why a document has its grade, number by number.

    \b
    assay explain --warehouse build/demo/warehouse --query q7 --system neural --system bm25
    assay explain --warehouse build/logs/warehouse --query q0 --doc d0
    """
    day = None if date is None else str(date)
    if systems:
        from jobs.explain_lists import explain_lists

        explain_lists(warehouse, run or day, query, systems, metric, as_json=output == "json")
        return
    rows = _labels(warehouse, query, doc, day, run)
    if output == "json":
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        click.echo("\n".join(explain(row)) + "\n")


def _labels(warehouse: str, query: str, doc: str | None, date: str | None, run: str | None) -> list[dict[str, Any]]:
    """The labels of the query, best first; of one document where it is named."""
    from jobs.published import newest_rows
    from schemas.errors import InputError, did_you_mean

    rows = newest_rows(warehouse, "labels", date=date, run=run, query=query)
    if not rows:
        raise InputError(f"the run has no labels for query {query!r}", hint="query_id is case sensitive")
    rows.sort(key=lambda row: (-(row["grade"] if row["grade"] is not None else -1), -(row["relevance"] or 0)))
    known = {row["doc_id"]: row for row in rows}
    if doc is not None and doc not in known:
        raise InputError(f"query {query!r} has no label for document {doc!r}", hint=did_you_mean(doc, known))
    return rows if doc is None else [known[doc]]


CUTS = ("is below the first cut", "reaches the first cut", "reaches the second cut", "reaches the third cut")
REASONS = {
    "promoted_by_purchase": "purchases promote it: the lower tenth of its purchase lift is above the bar",
    "promoted_by_cart": "carts promote it: the lower tenth of its cart lift is above the bar",
    "too_little_evidence": "too few examinations or people; unjudged is not irrelevant",
    "judged": "a person judged it, which outweighs behaviour",
}


def explain(row: dict[str, Any]) -> list[str]:
    """The way from counts to grade."""
    grade = "no grade" if row["grade"] is None else f"grade {row['grade']}"
    reason = (
        f"its lift {CUTS[row['grade']]}" if row["reason"] == "graded" else REASONS.get(row["reason"], row["reason"])
    )
    lines = [f"{row['query_id']} / {row['doc_id']}: {grade}, {reason}"]
    if not row["impressions"]:
        return lines
    places = "1 position" if row["positions"] == 1 else f"{row['positions']} positions"
    base = row["relevance"] / row["lift_click"] if row["lift_click"] else None
    lines.append(
        f"  shown {row['impressions']:,} times to {row['users']:,} people at {places}; looked at "
        f"about {row['examinations']:,.1f} times (each impression counts by the chance that its position is looked at)"
    )
    lines.append(f"  clicks {row['clicks']:,}, carts {row['carts']:,}, purchases {row['purchases']:,}")
    lines.append(
        f"  relevance {row['relevance']:.4f} clicks per look (90 % interval {row['relevance_low']:.4f} to "
        f"{row['relevance_high']:.4f}); naive click rate {row['ctr']:.4f}"
    )
    if base:
        lines.append(
            f"  the query's own rate is {base:.4f}, so lift {row['lift_click']:.2f} by clicks, "
            f"{_or_none(row['lift_cart'])} by carts, {_or_none(row['lift_purchase'])} by purchases"
        )
    return lines


def _or_none(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"
