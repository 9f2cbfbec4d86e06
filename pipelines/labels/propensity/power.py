"""The prior of every curve, a power of the position, and the curve that it and a measurement imply."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.labels.propensity.evidence import Floats
from pipelines.labels.propensity.information import Measurement, invert

ETA_DEVIATION = 0.5  # standard deviation of the exponent
DEVIATION = 0.25  # standard deviation of a position from the power where nothing is measured
HIGHEST = 1.5  # of a propensity
_FREE = 3  # fewest positions at which deviations from a power can be distinguished from noise
_PRECISE = 1.0  # variance of log θ up to which a position tells of such deviations


@dataclass(frozen=True)
class PowerPosterior:
    """log θ of positions 2, 3, … with its covariance, and the exponent of its power with its standard deviation."""

    log_theta: Floats
    covariance: Floats
    prior_variance: Floats
    eta: float
    eta_deviation: float


def compute_slopes(positions: int) -> Floats:
    """∂ log θ_k/∂η = −ln k of positions 2, 3, …"""
    return np.asarray(-np.log(np.arange(2.0, positions + 1.0)))


def pull_to_power(measurement: Measurement, eta: float) -> PowerPosterior:
    """The posterior of log θ_k = −η·ln k + u_k, with η ~ N(eta, 0.5²) and u_k ~ N(0, τ²).

    τ² is estimated by moments (DerSimonian and Laird 1986): 0 where noise explains the deviations from a power. The
    covariance adds what is not known of the deviation of each position: up to 0.25² where nothing is measured.
    """
    information, size = measurement.information, measurement.log_theta.size
    slope = compute_slopes(size + 1)
    between = max(estimate_deviation(measurement, slope), 1e-6)
    power = ETA_DEVIATION**2 * np.outer(slope, slope)
    prior = np.linalg.inv(between * np.eye(size) + power)
    mean = np.linalg.solve(information + prior, information @ measurement.log_theta + prior @ (eta * slope))
    deviation = between + 1 / (0.5 / measurement.variance + DEVIATION**-2)
    covariance = np.linalg.inv(information + np.linalg.inv(np.diag(deviation) + power))
    shift, variance = estimate_exponent(
        measurement, measurement.log_theta - eta * slope, deviation=between, spread=ETA_DEVIATION**2
    )
    return PowerPosterior(
        log_theta=np.asarray(mean, dtype=np.float64),
        covariance=covariance,
        prior_variance=ETA_DEVIATION**2 * slope**2 + DEVIATION**2,
        eta=eta + shift,
        eta_deviation=float(np.sqrt(variance)),
    )


def estimate_exponent(measurement: Measurement, gap: Floats, *, deviation: float, spread: float) -> tuple[float, float]:
    """The posterior mean and variance of δ in gap = −δ·ln k + u, with δ ~ N(0, spread) and u_k ~ N(0, deviation)."""
    if spread <= 0:
        return 0.0, 0.0
    slope = compute_slopes(gap.size + 1)
    # The deviations u are integrated out.
    marginal = measurement.information @ np.linalg.inv(np.eye(gap.size) + deviation * measurement.information)
    variance = 1 / (float(slope @ marginal @ slope) + 1 / spread)
    return variance * float(slope @ marginal @ gap), variance


def estimate_deviation(measurement: Measurement, slope: Floats) -> float:
    """τ², the variance of the positions around a power beyond their noise, from those that are precise enough."""
    covariance = invert(measurement.information)
    precise = np.flatnonzero(np.diag(covariance) < _PRECISE)
    if precise.size < _FREE:
        return 0.0
    noise, power = covariance[np.ix_(precise, precise)], slope[precise]
    weight = 1 / np.diag(noise)
    hat = np.outer(power, power * weight) / np.sum(weight * power**2)
    rest = np.eye(precise.size) - hat
    apart = rest @ measurement.log_theta[precise]
    expected = np.sum(weight * np.diag(rest @ noise @ rest.T))
    return max(0.0, float((np.sum(weight * apart**2) - expected) / np.sum(weight * np.diag(rest @ rest.T))))
