"""Whether all systems answer the same queries."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="rankings",
    severity="warn",
    threshold=0.1,
    measures="largest share of the ranked queries that a system has no list for",
    advice="look for an export that stopped early or a system under two names; compare what both systems answer",
    drawn=True,
)
def unanswered_queries(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A mean over the queries that a system happens to answer is no measure beside that of one that answers all."""
    for name, known in facts.having("same_lists", "asked"):
        answered = {system: lists for system, (_, lists) in known["same_lists"].items()}
        if not answered:
            continue
        worst = min(answered, key=lambda system: answered[system])
        what = f"queries have no list of {worst}"
        missed = known["asked"] - answered[worst]
        yield at_most(threshold, name, missed, known["asked"], what, column="system", sample=(worst,))
