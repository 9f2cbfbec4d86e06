"""How sure a curve is, and how much of a context's own curve to believe."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from pipelines.propensity.evidence import Evidence, Floats
from pipelines.propensity.registry import Curve, Estimator


@dataclass(frozen=True)
class Estimate:
    """A curve with the standard error of the log of its by-position form; nan where none was computed."""

    curve: Curve
    positions: Floats
    error: Floats
    draws: int

    def bounds(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """t interval on the log scale."""
        reach = float(stats.t.ppf(0.5 + level / 2, max(self.draws - 1, 1))) * self.error
        return self.positions * np.exp(-reach), self.positions * np.exp(reach)


def estimate(estimator: Estimator, evidence: Evidence, assumed: Floats, *, jackknife: bool) -> Estimate:
    """Fit, then fit again without each bucket: variance (G − 1)/G·Σ(θ_g − mean)² on the log scale."""
    evidence = evidence if estimator.cells else evidence.sums_only()
    curve = estimator.fit(evidence, assumed)
    positions = curve.by_position(evidence)
    used = np.flatnonzero(evidence.shown.sum(axis=(1, 2)) > 0)
    if not jackknife or used.size < 2:
        return Estimate(curve, positions, np.full(positions.size, np.nan), 0)
    logs = []
    for bucket in used:
        rest = evidence.without(int(bucket))
        logs.append(np.log(np.maximum(estimator.fit(rest, positions).by_position(rest), 1e-12)))
    spread = np.array(logs) - np.mean(logs, axis=0)
    error = np.sqrt((used.size - 1) / used.size * np.sum(spread**2, axis=0))
    return Estimate(curve, positions, error, int(used.size))


def shrink(own: list[Estimate], pooled: Estimate, connected: list[Floats]) -> list[Estimate]:
    """Pull the curves of contexts to the pooled one, the more the less sure they are.

    On the log scale, weight τ²/(τ² + se²), with τ² the variance between contexts by moments (DerSimonian and Laird
    1986). A position that its context cannot estimate takes the pooled value.
    """
    gaps = [np.log(one.positions / pooled.positions) for one in own]
    usable = [(link > 0) & np.isfinite(one.error) & (one.error > 0) for one, link in zip(own, connected, strict=True)]
    kept = list(zip(gaps, own, usable, strict=True))
    excess = np.concatenate([(gap**2 - one.error**2)[fit] for gap, one, fit in kept])
    weight = np.concatenate([1 / one.error[fit] ** 2 for _, one, fit in kept])
    between = max(0.0, float(np.average(excess, weights=weight))) if weight.size else 0.0
    shrunk = []
    for gap, one, fit in kept:
        share = np.where(fit, between / np.maximum(between + np.where(fit, one.error, 1.0) ** 2, 1e-300), 0.0)
        positions = pooled.positions * np.exp(share * gap)
        error = np.sqrt(share**2 * np.where(fit, one.error, 0.0) ** 2 + (1 - share) ** 2 * pooled.error**2)
        factor = (positions / one.positions)[:, None]
        curve = Curve(one.curve.propensity * factor, one.curve.offset)
        shrunk.append(Estimate(curve, positions, error, one.draws))
    return shrunk
