"""From a fitted curve to the one that is used: pulled to a power of the position, with intervals; contexts shrunk."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special  # not scipy.stats, which takes a second to import

from pipelines.labels.propensity.edges import find_connected_positions
from pipelines.labels.propensity.evidence import Floats, PositionEvidence
from pipelines.labels.propensity.information import Measurement
from pipelines.labels.propensity.measure import measure_by_jackknife, score_cells, score_rates
from pipelines.labels.propensity.power import HIGHEST, PowerPosterior, compute_slopes, estimate_exponent, pull_to_power
from pipelines.labels.propensity.registry import Curve, Estimator
from pipelines.labels.propensity.settings import PropensitySettings

_LOWEST = 1e-6  # of a propensity
_OWN = 0.5  # largest standard error of log θ of a position that is measured
_MOVED = 0.9  # share of the prior variance below which the log has moved a position


@dataclass(frozen=True)
class CurveEstimate:
    """A curve with the standard error of log θ by position, and what each position is based on."""

    curve: Curve
    positions: Floats
    error: Floats  # nan where there is none
    basis: tuple[str, ...]  # measured, pulled or assumed
    eta: float = float("nan")
    eta_deviation: float = float("nan")
    measurement: Measurement | None = None  # before the prior

    def bounds(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Confidence interval on the log scale, within the range of propensities."""
        reach = float(special.ndtri(0.5 + level / 2)) * self.error
        low, high = self.positions * np.exp(-reach), self.positions * np.exp(reach)
        return np.maximum(low, _LOWEST), np.minimum(high, HIGHEST)


def estimate_curve(
    estimator: Estimator, evidence: PositionEvidence, assumed: Floats, settings: PropensitySettings
) -> CurveEstimate:
    """Fit the curve, measure its information, and pull it to a power of the position where that is weak."""
    evidence = evidence if estimator.cells else evidence.sums_only()
    curve = estimator.fit(evidence, assumed)
    if estimator.fixed:
        return _keep_fixed(estimator, evidence, curve, settings)
    measurement = measure_curve(estimator, evidence, curve, settings)
    posterior = pull_to_power(measurement, settings.assumed_eta)
    connected = np.ones(assumed.size, dtype=np.bool_)
    if estimator.graph:
        connected = find_connected_positions(evidence, settings.minimum_edge)
    positions = bound_propensities(np.exp(np.append(0.0, posterior.log_theta)))
    return CurveEstimate(
        curve=replace_positions(curve, positions, measurement),
        positions=positions,
        error=np.sqrt(np.append(0.0, np.diag(posterior.covariance))),
        basis=("measured", *_find_basis(measurement, posterior, connected[1:])),
        eta=posterior.eta,
        eta_deviation=posterior.eta_deviation,
        measurement=measurement,
    )


def measure_curve(
    estimator: Estimator, evidence: PositionEvidence, curve: Curve, settings: PropensitySettings
) -> Measurement:
    """The information of a fitted curve."""
    if estimator.measure is not None:
        return estimator.measure(evidence, curve)
    if estimator.fixed:
        examined = (evidence.shown[:, :, : curve.propensity.shape[1]] * curve.propensity).sum(axis=2)
        binomial = score_rates(evidence.shown.sum(axis=2), examined)
    elif estimator.cells:
        binomial = score_cells(evidence, curve)
    else:
        binomial = score_rates(evidence.shown.sum(axis=2), evidence.clicks.sum(axis=2))
    refits = settings.jackknife and (estimator.cells or not estimator.fixed)
    return measure_by_jackknife(estimator.fit, evidence, curve, binomial) if refits else binomial.measure()


def _keep_fixed(
    estimator: Estimator, evidence: PositionEvidence, curve: Curve, settings: PropensitySettings
) -> CurveEstimate:
    """A curve that follows from the clicks of each page (with its sampling error) or from an assumption (without)."""
    positions = bound_propensities(curve.by_position(evidence))
    positions[0] = 1.0
    if estimator.history is None:
        error = np.full(positions.size, np.nan)
        return CurveEstimate(curve=curve, positions=positions, error=error, basis=("assumed",) * positions.size)
    variance = measure_curve(estimator, evidence, curve, settings).variance
    error = np.sqrt(np.append(0.0, variance))
    return CurveEstimate(curve=curve, positions=positions, error=error, basis=("measured",) * positions.size)


def _find_basis(measurement: Measurement, posterior: PowerPosterior, connected: NDArray[np.bool_]) -> list[str]:
    """What decided each position: its own evidence, the evidence of others or too little of its own, or the prior."""
    measured = connected & (measurement.variance <= np.minimum(posterior.prior_variance, _OWN**2))
    pulled = np.diag(posterior.covariance) <= _MOVED * posterior.prior_variance
    return [str(basis) for basis in np.where(measured, "measured", np.where(pulled, "pulled", "assumed"))]


def bound_propensities(positions: Floats) -> Floats:
    """Propensities within their range."""
    return np.clip(positions, _LOWEST, HIGHEST)


def replace_positions(curve: Curve, positions: Floats, measurement: Measurement) -> Curve:
    """The curve with other values by position; states that are not identified take the value of their position."""
    correction = 0.0 if measurement.correction is None else measurement.correction
    before = np.exp(np.append(0.0, measurement.log_theta - correction))
    scaled = curve.propensity * (positions / before)[:, None]
    if measurement.identified is not None:
        scaled = np.where(measurement.identified, scaled, positions[:, None])
    return Curve(bound_propensities(scaled), curve.offset)


def shrink_curves(own: list[CurveEstimate], pooled: CurveEstimate) -> list[CurveEstimate]:
    """Shrink the curves of contexts to the pooled one, by what each measures.

    log θ − pooled = −δ·ln k + u_k with δ ~ N(0, τ_δ²) and u_k ~ N(0, τ²): contexts differ in the exponent first. Both
    variances are estimated by moments over the contexts (DerSimonian and Laird 1986). A position that a context cannot
    estimate follows the exponent of the context. Curves that no prior moves stay as they are.
    """
    measured = [(one, one.measurement) for one in own if one.measurement is not None]
    center, slope = np.log(pooled.positions[1:]), compute_slopes(pooled.positions.size)
    if not measured or not slope.size:
        return own
    precision = np.array([max(float(slope @ m.information @ slope), 1e-9) for _, m in measured])
    gaps = [m.log_theta - center for _, m in measured]
    tilts = np.array([slope @ m.information @ gap for gap, (_, m) in zip(gaps, measured, strict=True)]) / precision
    deviations = np.concatenate([gap - tilt * slope for gap, tilt in zip(gaps, tilts, strict=True)])
    variances = np.concatenate([m.variance for _, m in measured])
    between_tilts = float(np.average(tilts**2 - 1 / precision, weights=precision))
    between = float(np.average(deviations**2 - variances, weights=1 / variances))
    spread, deviation = max(between_tilts, 0.0), max(between, 1e-6)
    return [_shrink_curve(one, m, pooled, spread=spread, deviation=deviation) for one, m in measured]


def _shrink_curve(
    one: CurveEstimate, measurement: Measurement, pooled: CurveEstimate, *, spread: float, deviation: float
) -> CurveEstimate:
    """The posterior of one context, from its measurement and a prior around the pooled curve."""
    center, slope = np.log(pooled.positions[1:]), compute_slopes(pooled.positions.size)
    prior = spread * np.outer(slope, slope) + deviation * np.eye(slope.size)
    covariance = np.linalg.inv(measurement.information + np.linalg.inv(prior))
    weight = covariance @ measurement.information  # of the context's own curve
    positions = bound_propensities(np.exp(np.append(0.0, center + weight @ (measurement.log_theta - center))))
    share = np.clip(1 - np.diag(covariance) / np.diag(prior), 0.0, 1.0)
    error = np.sqrt(np.append(0.0, np.diag(covariance) + (1 - share) ** 2 * pooled.error[1:] ** 2))
    shift, variance = estimate_exponent(measurement, measurement.log_theta - center, deviation=deviation, spread=spread)
    inherited = variance / spread if spread else 1.0  # share of the pooled exponent
    scaled = bound_propensities(one.curve.propensity * (positions / one.positions)[:, None])
    return replace(
        one,
        curve=Curve(scaled, one.curve.offset),
        positions=positions,
        error=error,
        basis=("measured", *map(_inherit_basis, share, pooled.basis[1:])),
        eta=pooled.eta + shift,
        eta_deviation=float(np.hypot(np.sqrt(variance), inherited * pooled.eta_deviation)),
    )


def _inherit_basis(share: float, pooled: str) -> str:
    return "measured" if share >= 0.5 else "assumed" if pooled == "assumed" else "pulled"
