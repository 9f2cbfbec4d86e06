"""How small a difference a number of queries can show, and how many queries a difference needs."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from udfs.ragged import Floats

POWER = 0.8
ALPHA = 0.05


def reach(power: float = POWER, alpha: float = ALPHA) -> float:
    """z(1 − α/2) + z(power): 2.802 for the usual 80 % at 5 %, two-sided."""
    return float(special.ndtri(1 - alpha / 2) + special.ndtri(power))


def detectable(stderr: npt.ArrayLike, power: float = POWER, alpha: float = ALPHA) -> Floats:
    """The smallest true difference that a test with this standard error finds with this power."""
    found: Floats = reach(power, alpha) * np.asarray(stderr, dtype=np.float64)
    return found


def queries_needed(stddev: float, delta: float, power: float = POWER, alpha: float = ALPHA) -> int:
    """Queries that a paired test needs to find a true difference `delta`: ⌈((z + z) · sd / delta)²⌉, at least 2."""
    return max(2, math.ceil((reach(power, alpha) * stddev / delta) ** 2))


def power_of(stddev: float, delta: float, queries: float, alpha: float = ALPHA) -> float:
    """The chance that a paired test over so many queries finds a true difference `delta`."""
    if stddev == 0:
        return 1.0 if delta else alpha
    shift = abs(delta) * math.sqrt(queries) / stddev
    edge = float(special.ndtri(1 - alpha / 2))
    return float(special.ndtr(shift - edge) + special.ndtr(-edge - shift))
