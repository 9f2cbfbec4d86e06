"""Ranked queries are in `queries`."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="rankings against queries",
    severity="warn",
    threshold=0.01,
    measures="largest share of lists whose query is not in queries",
    advice="compare query_id of both tables; a list without a query has weight 1 and belongs to no segment",
    sampled=True,
)
def rankings_without_query(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A list whose query is unknown has no segment and no traffic weight, and is missing from reports by them."""
    for table, figures in facts.select_tables("lists", "unlisted"):
        yield check_share(
            threshold,
            table,
            part=figures["unlisted"],
            whole=figures["lists"],
            what="lists answer a query that is not in queries",
            column="query_id",
            sample=figures["unlisted_sample"],
        )
