"""Whether people look at the page as before."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check, percent


@check(
    tables="propensities",
    severity="warn",
    threshold=0.25,
    measures="largest mean change of the chance to be looked at, over the positions, against the previous run",
    advice="look for a new layout or a changed logging of positions; assay propensity draws both curves",
)
def propensity_drift(facts: Facts, threshold: float) -> Iterator[Finding]:
    """The curve is a habit of people and a layout; when it moves overnight, something else moved."""
    for name, known in facts.having("curve"):
        before = facts.previous(name, "curve") or {}
        both = [(value, before[at]) for at, value in known["curve"].items() if before.get(at)]
        if len(both) < 2:
            continue
        found = sum(abs(now / then - 1) for now, then in both) / len(both)
        yield Finding(
            name,
            found <= threshold,
            observed=f"{percent(found)} mean change over {len(both)} positions",
            allowed=f"at most {percent(threshold)}",
            column="propensity",
            rows=len(both),
        )
