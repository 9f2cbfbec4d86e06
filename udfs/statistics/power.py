"""Power: the smallest detectable difference, and the number of queries that a difference needs."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from schemas.errors import ConfigurationError
from udfs.ragged import Floats

POWER = 0.8
LARGEST_RATIO = 1e9  # of noise to difference; its square is the number of queries
ALPHA = 0.05


def total_quantile(power: float = POWER, alpha: float = ALPHA) -> float:
    """z(1 − α/2) + z(power): 2.802 for the usual 80 % at 5 %, two-sided."""
    return float(special.ndtri(1 - alpha / 2) + special.ndtri(power))


def detectable_delta(stderr: npt.ArrayLike, power: float = POWER, alpha: float = ALPHA) -> Floats:
    """The smallest true difference that a test with this standard error detects with this power."""
    delta: Floats = total_quantile(power, alpha) * np.asarray(stderr, dtype=np.float64)
    return delta


def queries_needed(stddev: float, delta: float, power: float = POWER, alpha: float = ALPHA) -> int:
    """Queries that a paired test needs to detect a true difference `delta`: ⌈((z + z) · sd / delta)²⌉, at least 2."""
    ratio = total_quantile(power, alpha) * stddev / delta
    if not ratio < LARGEST_RATIO:
        raise ConfigurationError(
            f"no number of queries detects a difference of {delta:g}", hint="give a larger --delta"
        )
    return max(2, math.ceil(ratio**2))


def compute_power(stddev: float, delta: float, queries: float, alpha: float = ALPHA) -> float:
    """The probability that a paired test over this many queries detects a true difference `delta`."""
    if stddev == 0:
        return 1.0 if delta else alpha
    shift = abs(delta) * math.sqrt(queries) / stddev
    edge = float(special.ndtri(1 - alpha / 2))
    return float(special.ndtr(shift - edge) + special.ndtr(-edge - shift))
