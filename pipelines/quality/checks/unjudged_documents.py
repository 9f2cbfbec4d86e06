"""Whether lists can be judged by these labels."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check, share


@check(
    tables="query_metrics",
    severity="warn",
    threshold=0.8,
    measures="largest share of a system's ranked documents that have no label",
    advice="add judged@k to metrics and look at it per system; get judgments for what the system newly returns",
)
def unjudged_documents(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A system whose documents were never judged is scored by the few that were."""
    for name, known in facts.having("judged"):
        judged = {system: counts for system, counts in known["judged"].items() if counts[1]}
        if not judged:
            continue
        worst = min(judged, key=lambda system: share(*judged[system]))
        labelled, ranked = judged[worst]
        what = f"documents that {worst} ranked have no label"
        yield at_most(threshold, name, ranked - labelled, ranked, what, column="judged", sample=(worst,))
