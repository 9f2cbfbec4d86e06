"""The propensity curve is as before."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, format_percent


@check(
    tables="propensities",
    severity="warn",
    threshold=0.25,
    measures="largest mean relative change of the propensities, over the positions, against the previous run",
    advice="look for a new layout or a change in how positions are logged; assay propensity draws both curves",
)
def propensity_drift(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """The curve depends on user habits and the layout; if it changes overnight, something else changed."""
    for table, figures in facts.select_tables("curve"):
        before = facts.find_previous(table, "curve") or {}
        pairs = [(value, before[position]) for position, value in figures["curve"].items() if before.get(position)]
        if len(pairs) < 2:
            continue
        change = sum(abs(now / then - 1) for now, then in pairs) / len(pairs)
        yield Finding(
            table=table,
            passed=change <= threshold,
            observed=f"{format_percent(change)} mean change over {len(pairs)} positions",
            allowed=f"at most {format_percent(threshold)}",
            column="propensity",
            rows=len(pairs),
        )
