"""A system answers different queries differently."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share, share_of

MIN_LISTS = 20  # with fewer lists of a system, a repeated one is no sign of an error


@check(
    tables="rankings",
    severity="error",
    threshold=0.5,
    measures="largest share of a system's queries that get the same documents",
    advice="check the export of that system: a default list, a failed join or a constant query",
    sampled=True,
)
def same_list(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A system that returns the same list for every query did not search; its metrics are those of a default list."""
    for table, figures in facts.select_tables("same_lists"):
        systems = {name: counts for name, counts in figures["same_lists"].items() if counts[1] >= MIN_LISTS}
        if not systems:
            continue
        worst = max(systems, key=lambda name: share_of(*systems[name]))
        same, lists = systems[worst]
        what = f"queries get the same documents from {worst}"
        yield check_share(threshold, table, same, lists, what, sample=(worst,))
