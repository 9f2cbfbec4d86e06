"""Ranked documents have labels."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share, share_of


@check(
    tables="query_metrics",
    severity="warn",
    threshold=0.8,
    measures="largest share of a system's ranked documents without a label",
    advice="add judged@k to metrics and compare it per system; collect judgments for the new documents of the system",
)
def unjudged_documents(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A system whose documents are mostly unjudged is scored by the few that are judged."""
    for table, figures in facts.select_tables("judged"):
        systems = {name: counts for name, counts in figures["judged"].items() if counts[1]}
        if not systems:
            continue
        worst = min(systems, key=lambda name: share_of(*systems[name]))
        judged, ranked = systems[worst]
        what = f"documents that {worst} ranked have no label"
        yield check_share(threshold, table, ranked - judged, ranked, what, column="judged", sample=(worst,))
