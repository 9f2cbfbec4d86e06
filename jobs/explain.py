"""Explain the metrics of a list, or the grade of a document: `assay explain`."""

from __future__ import annotations

import json
from typing import Any

import click

from jobs.support.completion import METRIC, RUN, SYSTEM
from jobs.support.options import Date, debug_option, output_option, warehouse_option
from jobs.support.terminal import echo_line


@click.command("explain")
@warehouse_option
@click.option("--query", required=True, help="The query_id.")
@click.option(
    "--system",
    "systems",
    multiple=True,
    type=SYSTEM,
    help="A system whose list to explain; two are shown side by side.",
)
@click.option("--doc", help="Explain the label of this document only (default: all documents of the query).")
@click.option("--date", type=Date(), help="The date of the run (default: the newest).")
@click.option("--run", type=RUN, help="The run (default: the newest of the date).")
@click.option(
    "--metric",
    type=METRIC,
    help="The metric whose gains are shown rank by rank (default: the first of the run).",
)
@click.option("--depth", type=click.IntRange(1), default=20, show_default=True, help="How many ranks to show.")
@output_option
@debug_option
def command(
    warehouse: str,
    query: str,
    systems: tuple[str, ...],
    doc: str | None,
    date: object,
    run: str | None,
    metric: str | None,
    depth: int,
    output: str,
) -> None:
    """Explain the metrics of a list, or the grade of a document, number by number.

    \b
    assay explain --warehouse build/demo/warehouse --query q7 --system neural --system bm25
    assay explain --warehouse build/logs/warehouse --query q0 --doc d0
    """
    day = None if date is None else str(date)
    if systems:
        from jobs.support.explain_lists import explain_lists

        explain_lists(warehouse, run or day, query, systems, metric, depth=depth, as_json=output == "json")
        return
    rows = _read_labels(warehouse, query, doc, day, run)
    if output == "json":
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        for line in [*explain_label(row), ""]:
            echo_line(line)


def _read_labels(
    warehouse: str, query: str, doc: str | None, date: str | None, run: str | None
) -> list[dict[str, Any]]:
    """The labels of the query, best first, or that of one document.

    With posteriors, each has its own under `posterior`; a document that nobody was shown has nothing else.
    """
    from jobs.support.published import find_newest_run, read_rows
    from schemas.errors import InputError, did_you_mean

    manifest = find_newest_run(warehouse, "labels", date=date, run=run)
    by_doc = {row["doc_id"]: row for row in read_rows(warehouse, manifest, "labels", query=query)}
    for posterior in read_rows(warehouse, manifest, "label_posteriors", query=query):
        pair = {name: posterior[name] for name in ("query_id", "doc_id")}
        by_doc[pair["doc_id"]] = by_doc.get(pair["doc_id"], pair) | {"posterior": posterior}
    if not by_doc:
        raise InputError(f"the run has no labels for query {query!r}", hint="query_id is case sensitive")
    rows = sorted(by_doc.values(), key=_rank_label, reverse=True)
    if doc is not None and doc not in by_doc:
        raise InputError(f"query {query!r} has no label for document {doc!r}", hint=did_you_mean(doc, by_doc))
    return rows if doc is None else [by_doc[doc]]


def _rank_label(row: dict[str, Any]) -> tuple[float, float]:
    """The better a label, the larger: by the mean grade of its posterior, else by its grade."""
    posterior = row.get("posterior")
    if posterior is not None:
        return posterior["grade_mean"], posterior["relevance"]
    return -1 if row["grade"] is None else row["grade"], row["relevance"] or 0


CUTS = ("is below the first cut", "reaches the first cut", "reaches the second cut", "reaches the third cut")
REASONS = {
    "promoted_by_purchase": "promoted by purchases: the 10 % quantile of its purchase lift is above the threshold",
    "promoted_by_cart": "promoted by carts: the 10 % quantile of its cart lift is above the threshold",
    "too_little_evidence": "too few examinations or people; unjudged is not irrelevant",
    "judged": "judged by a person, which overrides behaviour",
}


SOURCES = {"behaviour": "its ranks and its clicks", "human": "the judgment", "prior": "its ranks"}


def explain_label(row: dict[str, Any]) -> list[str]:
    """How the grade of a document follows from its counts, line by line."""
    posterior = [] if row.get("posterior") is None else [_describe_posterior(row["posterior"])]
    if "grade" not in row:
        return [f"{row['query_id']} / {row['doc_id']}: nobody was shown it; its posterior is the prior", *posterior]
    grade = "no grade" if row["grade"] is None else f"grade {row['grade']}"
    reason = (
        f"its lift {CUTS[row['grade']]}" if row["reason"] == "graded" else REASONS.get(row["reason"], row["reason"])
    )
    lines = [f"{row['query_id']} / {row['doc_id']}: {grade}, {reason}"]
    if not row["impressions"]:
        return lines + posterior
    places = "1 position" if row["positions"] == 1 else f"{row['positions']} positions"
    base = row["relevance"] / row["lift_click"] if row["lift_click"] else None
    lines.append(
        f"  shown {row['impressions']:,} times to {row['users']:,} people at {places}; examined about "
        f"{row['examinations']:,.1f} times (each impression weighted by the examination probability of its position)"
    )
    lines.append(f"  clicks {row['clicks']:,}, carts {row['carts']:,}, purchases {row['purchases']:,}")
    lines.append(
        f"  relevance {row['relevance']:.4f} clicks per examination (90 % interval {row['relevance_low']:.4f} to "
        f"{row['relevance_high']:.4f}); naive click rate {row['ctr']:.4f}"
    )
    if base:
        lines.append(
            f"  the query's average is {base:.4f}, so the lift is {row['lift_click']:.2f} by clicks, "
            f"{_format_lift(row['lift_cart'])} by carts, {_format_lift(row['lift_purchase'])} by purchases"
        )
    if row.get("p_grade_0") is not None:  # absent from runs of earlier versions
        chances = ", ".join(f"{grade}: {row[f'p_grade_{grade}']:.0%}" for grade in range(4))
        lines.append(f"  probability of each grade: {chances}")
    return lines + posterior


def _describe_posterior(row: dict[str, Any]) -> str:
    """What metrics are computed with: the grade over draws, and the relevance that it is drawn from."""
    grade = f"{row['grade_mean']:.2f} ± {row['grade_sd']:.2f} over {len(row['grade_draws'])} draws"
    return (
        f"  posterior, from {SOURCES[row['source']]}: grade {grade}; relevance {row['relevance']:.4f} ± "
        f"{row['relevance_sd']:.4f}, lift {row['lift']:.2f} over the pool"
    )


def _format_lift(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"
