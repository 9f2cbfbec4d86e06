"""Whether the ranked queries are judged at all."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="rankings against judgments",
    severity="warn",
    threshold=0.5,
    measures="largest share of lists whose query has no judgment",
    advice="compare query_id of both tables; queries without a judgment are left out of every mean",
    drawn=True,
)
def rankings_without_label(facts: Facts, threshold: float) -> Iterator[Finding]:
    """Means over the few queries that happen to be judged speak for those few."""
    for name, known in facts.having("lists", "unlabelled"):
        what, such = "lists answer a query without a judgment", known["unlabelled_sample"]
        yield at_most(threshold, name, known["unlabelled"], known["lists"], what, column="query_id", sample=such)
