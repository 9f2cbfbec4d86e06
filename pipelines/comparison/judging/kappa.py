"""Agreement of two judges: weighted kappa with an interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from udfs.statistics.ratio import Estimate

Grades = Mapping[tuple[str, str], float]  # by query and document


@dataclass(frozen=True)
class Agreement:
    """How far two judges agree on the pairs that both graded.

    Kappa is NaN where neither varies, and so are its bounds where it is without one of the queries.
    """

    pairs: int
    queries: int
    equal: float
    kappa: float
    low: float
    high: float


def measure_kappa(one: Grades, two: Grades, confidence: float = 0.95) -> Agreement | None:
    """Quadratic weighted κ (Cohen 1968) with an interval by the jackknife over queries; None without common pairs.

    κ = 1 − mean (a − b)² / (mean a² + mean b² − 2 · mean a · mean b). Pairs of one query are not independent, so whole
    queries are left out in turn.
    """
    both = sorted(one.keys() & two.keys())
    if not both:
        return None
    a, b = (np.array([grades[pair] for pair in both]) for grades in (one, two))
    names, owner = np.unique([query for query, _ in both], return_inverse=True)
    terms = np.stack((np.ones_like(a), a, b, a * a, b * b, (a - b) ** 2))
    sums = np.stack([np.bincount(owner, term, minlength=len(names)) for term in terms])
    total = sums.sum(axis=1, keepdims=True)
    kappa = float(_compute_kappa(total)[0])
    rest = _compute_kappa(total - sums)
    n = len(names)
    stderr = np.sqrt((n - 1.0) / n * ((rest - rest.mean()) ** 2).sum()) if n > 1 else np.nan
    low, high = Estimate(np.array(kappa), np.array(stderr), np.array(n - 1.0)).interval(confidence)
    return Agreement(
        pairs=len(both),
        queries=n,
        equal=float(np.mean(a == b)),
        kappa=kappa,
        low=float(np.maximum(low, -1.0)),
        high=float(np.minimum(high, 1.0)),
    )


def _compute_kappa(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        n, a, b, aa, bb, apart = sums
        chance = (aa + bb) / n - 2.0 * a * b / n**2
        return np.asarray(np.where(chance > 1e-12, 1.0 - apart / n / chance, np.nan))
