"""Whether the ranked queries are known."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="rankings against queries",
    severity="warn",
    threshold=0.01,
    measures="largest share of lists whose query is not in queries",
    advice="compare query_id of both tables; a list without a query has weight 1 and belongs to no segment",
    drawn=True,
)
def rankings_without_query(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A list whose query is unknown has no segment and no traffic, and falls out of what is reported by them."""
    for name, known in facts.having("lists", "unlisted"):
        what, such = "lists answer a query that is not in queries", known["unlisted_sample"]
        yield at_most(threshold, name, known["unlisted"], known["lists"], what, column="query_id", sample=such)
