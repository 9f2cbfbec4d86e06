"""Whether a system looks at the query."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check, share

FEWEST = 20  # lists of a system below which a repeated one says nothing


@check(
    tables="rankings",
    severity="error",
    threshold=0.5,
    measures="largest share of a system's queries that get the same documents",
    advice="look at the export of that system: a default list, a failed join or a constant query",
    drawn=True,
)
def same_list(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A system that gives every query the same list has not searched, and its numbers are those of a default."""
    for name, known in facts.having("same_lists"):
        judged = {s: (same, lists) for s, (same, lists) in known["same_lists"].items() if lists >= FEWEST}
        if not judged:
            continue
        worst = max(judged, key=lambda system: share(*judged[system]))
        same, lists = judged[worst]
        what = f"queries get the same documents from {worst}"
        yield at_most(threshold, name, same, lists, what, sample=(worst,))
