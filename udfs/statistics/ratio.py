"""Means and pooled ratios with their standard errors, from six sums that merge.

Every average here is a ratio R = Σy / Σx over independent units: the plain mean has y = value and x = 1, the
weighted one y = weight · value and x = weight, the pooled one y = hits and x = what could have been hit. A
unit is a query or, where queries are dependent, a cluster of them with y and x summed over its queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from udfs.ragged import Floats

SUMS = ("units", "y", "x", "yy", "xy", "xx")  # the order of the six sums
_ROUNDING = 1e-14  # a residual below this share of the minuend is rounding


@dataclass(frozen=True)
class Estimate:
    """Estimates, their standard errors and degrees of freedom; NaN where there is nothing to estimate from."""

    value: Floats
    stderr: Floats
    degrees: Floats

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """The two-sided t interval: value ± t(1 − α/2, degrees) · stderr."""
        reach: Floats = self._quantile(0.5 + confidence / 2) * self.stderr
        return self.value - reach, self.value + reach

    def low(self, confidence: float) -> Floats:
        """The one-sided lower bound: value − t(confidence, degrees) · stderr."""
        bound: Floats = self.value - self._quantile(confidence) * self.stderr
        return bound

    def p_value(self) -> Floats:
        """Two-sided t test of "it is 0"; 1 where value and error are both 0, NaN where there is no error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t: Floats = np.abs(self.value) / self.stderr
            p = 2.0 * np.asarray(special.stdtr(np.maximum(self.degrees, 1.0), -t), dtype=np.float64)
        certain = np.where((self.value == 0) & (self.stderr == 0), 1.0, p)
        return np.where(np.isnan(self.stderr), np.nan, certain)

    def _quantile(self, probability: float) -> Floats:
        return np.asarray(special.stdtrit(np.maximum(self.degrees, 1.0), probability), dtype=np.float64)


def estimate_ratio(sums: Floats) -> Estimate:
    """Σy / Σx and its linearised standard error, from sums whose last axis is `SUMS`.

    With residuals u = y − R·x over G units, Var(R) = G / (G − 1) · Σu² / (Σx)² on G − 1 degrees of freedom:
    s²/n for the plain mean, CR1 for clusters, Taylor linearisation for weights and pools (Cochran, Sampling
    Techniques, 1977, ch. 6; Cameron and Miller, A practitioner's guide to cluster-robust inference, 2015).
    """
    units, y, x, yy, xy, xx = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(x > 0, y / x, np.nan)
        residual = yy - 2.0 * value * xy + value**2 * xx
        residual = np.where(residual > _ROUNDING * (yy + value**2 * xx), residual, 0.0)
        variance = units / (units - 1.0) * residual / x**2
        stderr = np.where((units > 1) & (x > 0), np.sqrt(variance), np.nan)
    return Estimate(value, stderr, np.maximum(units - 1.0, 0.0))
