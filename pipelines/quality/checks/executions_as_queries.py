"""Whether a query_id names what people repeat."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check, percent, share

FEWEST = 100  # pages below which it is no wonder that queries do not repeat


@check(
    tables="impressions",
    severity="warn",
    threshold=0.9,
    measures="largest number of different query_ids per page",
    advice="make query_id from the normalised text and what else makes the same search; serp_id names one execution",
)
def executions_as_queries(facts: Facts, threshold: float) -> Iterator[Finding]:
    """Where every execution is a query of its own, no evidence adds up and nothing gets a label."""
    for name, known in facts.having("queries", "pages"):
        if known["pages"] < FEWEST:
            continue
        found = min(share(known["queries"], known["pages"]), 1.0)  # both are estimates
        yield Finding(
            name,
            found <= threshold,
            observed=f"about {known['queries']:,} query_ids on about {known['pages']:,} pages ({percent(found)})",
            allowed=f"at most {percent(threshold)}",
            column="query_id",
        )
