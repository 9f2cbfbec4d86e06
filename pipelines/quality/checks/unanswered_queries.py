"""All systems answer the same queries."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="rankings",
    severity="warn",
    threshold=0.1,
    measures="largest share of the ranked queries for which a system has no list",
    advice="look for an export that stopped early or a system with two names; compare the queries of both systems",
    sampled=True,
)
def unanswered_queries(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """Means of two systems over different queries are not comparable."""
    for table, figures in facts.select_tables("same_lists", "asked"):
        lists = {system: count for system, (_, count) in figures["same_lists"].items()}
        if not lists:
            continue
        worst = min(lists, key=lambda system: lists[system])
        queries = figures["asked"]
        what = f"queries have no list of {worst}"
        yield check_share(threshold, table, queries - lists[worst], queries, what, column="system", sample=(worst,))
