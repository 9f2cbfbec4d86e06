"""A power of the position as the curve to expect, as far as the log does not say otherwise."""

import numpy as np

from pipelines.propensity.evidence import Floats, Ints

_FREE = 3  # positions below the first from which on their distance from a power can be told from noise


def toward_power(curve: Floats, positions: Ints, covariance: Floats) -> Floats:
    """Pull θ_k to k^−η, the more the less sure it is; `covariance` is that of log θ, θ_1 = 1 not among them.

    On the log scale, weight τ²/(τ² + se²), with η by weighted least squares and τ², the variance of what is no power
    of k, by moments (DerSimonian and Laird 1986): 0 where the distances from the power are those of noise alone.
    """
    if positions.size < _FREE:
        return curve
    power, variance = -np.log(positions), np.maximum(np.diag(covariance), 1e-12)
    weight = 1 / variance
    hat = np.outer(power, power * weight) / np.sum(weight * power**2)
    rest = np.eye(positions.size) - hat
    apart = rest @ np.log(curve)
    noise = np.sum(weight * np.diag(rest @ covariance @ rest.T))
    between = max(0.0, float((np.sum(weight * apart**2) - noise) / np.sum(weight * np.diag(rest @ rest.T))))
    return np.asarray(np.exp(hat @ np.log(curve) + between / (between + variance) * apart))
