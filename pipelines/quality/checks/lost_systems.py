"""Every system has usable rows."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check


@check(
    tables="rankings, impressions",
    severity="warn",
    threshold=0,
    measures="systems, or files of runs, that may have no usable row",
    advice="look up why their rows are in quarantine, and fix them or take them out",
)
def lost_systems(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A system without a usable row is missing from all results, and nothing else names it."""
    for table, figures in facts.select_tables("lost_systems"):
        lost = figures["lost_systems"]
        yield Finding(
            table=table,
            passed=len(lost) <= threshold,
            observed=f"{len(lost)} systems or files have no usable row",
            allowed=f"at most {threshold:g}",
            column="system",
            sample=tuple(lost[:3]),
        )
