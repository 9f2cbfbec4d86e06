"""No document is examined more often than it is shown."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check

_ROUNDING = 1e-9


@check(
    tables="labels",
    severity="error",
    threshold=1.5,
    measures="largest number of examinations of a label per impression",
    advice="look at the propensities of the run: examinations are impressions, weighted by propensity",
)
def excess_examinations(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """Examinations are impressions, weighted by propensity; more of them mean that the curve is wrong."""
    for table, figures in facts.select_tables("examined"):
        yield Finding(
            table=table,
            passed=figures["examined"] <= threshold * (1 + _ROUNDING),
            observed=f"at most {figures['examined']:.4g} examinations per impression",
            allowed=f"at most {threshold:g}",
            column="examinations",
        )
