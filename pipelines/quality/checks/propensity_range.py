"""Propensities are probabilities relative to position 1."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check


@check(
    tables="propensities",
    severity="error",
    threshold=1.5,
    measures="largest propensity of a position in any context; each must be above 0",
    advice="read the diagnostics of the curve, and choose another labels.propensity.estimator",
)
def propensity_range(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """No position is examined never, or far more often than position 1."""
    for table, figures in facts.select_tables("range"):
        low, high = figures["range"]
        yield Finding(
            table=table,
            passed=low > 0 and high <= threshold,
            observed=f"propensities from {low:.4g} to {high:.4g}",
            allowed=f"above 0 and at most {threshold:g}",
            column="propensity",
        )
