"""A page answers one search."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="impressions",
    severity="warn",
    threshold=0.01,
    measures="largest share of pages whose rows have different queries, users or systems",
    advice="look for a serp_id that is reused, or a join that mixed the rows of pages",
    sampled=True,
)
def mixed_pages(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A page is the answer of one system to one search; if its rows disagree, some of them are wrong."""
    for table, figures in facts.select_tables("mixed", "whole_pages"):
        yield check_share(
            threshold,
            table,
            part=figures["mixed"],
            whole=figures["whole_pages"],
            what="pages have rows of different queries, users or systems",
            column="serp_id",
            sample=figures["mixed_sample"],
        )
