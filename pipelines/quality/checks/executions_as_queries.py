"""A query_id identifies a repeated query."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, format_percent, share_of

MIN_PAGES = 100  # with fewer pages, queries need not repeat


@check(
    tables="impressions",
    severity="warn",
    threshold=0.9,
    measures="largest number of distinct query_ids per page",
    advice="build query_id from the normalised text and the search context; serp_id identifies one execution",
)
def executions_as_queries(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """If every execution is a query of its own, evidence does not accumulate and nothing gets a label."""
    for table, figures in facts.select_tables("queries", "pages"):
        queries, pages = figures["queries"], figures["pages"]
        if pages < MIN_PAGES:
            continue
        ratio = min(share_of(queries, pages), 1.0)  # both are estimates
        yield Finding(
            table=table,
            passed=ratio <= threshold,
            observed=f"about {queries:,} query_ids on about {pages:,} pages ({format_percent(ratio)})",
            allowed=f"at most {format_percent(threshold)}",
            column="query_id",
        )
