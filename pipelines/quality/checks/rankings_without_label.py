"""Ranked queries have judgments."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="rankings against judgments",
    severity="warn",
    threshold=0.5,
    measures="largest share of lists whose query has no judgment",
    advice="compare query_id of both tables; queries without a judgment are left out of every mean",
    sampled=True,
)
def rankings_without_label(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A mean over the few queries with judgments represents only those few."""
    for table, figures in facts.select_tables("lists", "unlabelled"):
        yield check_share(
            threshold,
            table,
            part=figures["unlabelled"],
            whole=figures["lists"],
            what="lists answer a query without a judgment",
            column="query_id",
            sample=figures["unlabelled_sample"],
        )
