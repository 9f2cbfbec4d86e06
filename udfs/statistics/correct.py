"""Multiple testing: p-values adjusted for the number of tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from udfs.ragged import Floats


def holm(p: Floats) -> Floats:
    """Holm's step-down: controls the family-wise error rate under any dependence.

    The i-th smallest p becomes max over j ≤ i of min(1, (m − j + 1) · p_j). Holm, Scand. J. Statist. 1979.
    """
    return _adjust(p, lambda ordered, m: np.maximum.accumulate((m - np.arange(m)) * ordered))


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's step-up: controls the false discovery rate.

    The i-th smallest p becomes min over j ≥ i of m · p_j / j. J. R. Statist. Soc. B 1995.
    """

    def step(ordered: Floats, m: int) -> Floats:
        raised = ordered * m / np.arange(1, m + 1)
        lowered: Floats = np.minimum.accumulate(raised[::-1])[::-1]
        return lowered

    return _adjust(p, step)


CORRECTIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": lambda p: p.copy(),
}


def _adjust(p: Floats, step: Callable[[Floats, int], Floats]) -> Floats:
    """`step` applied to the p-values in ascending order; NaN is no test and is not counted."""
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted[order] = np.minimum(step(p[order], len(order)), 1.0)
    return adjusted
