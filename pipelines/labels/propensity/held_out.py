"""Held-out perplexity: predict the clicks of a pair at one position from its clicks at the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special  # not scipy.stats, which takes a second to import

from pipelines.labels.propensity.diagnostics import SIGNIFICANCE, CurveDiagnostic
from pipelines.labels.propensity.evidence import Cells, Floats
from pipelines.labels.propensity.registry import Curve

_STRENGTHS = (2.0, 1000.0)  # limits of the prior strength, in examinations


def diagnose_fit(cells: Cells, curve: Curve) -> list[CurveDiagnostic]:
    """Compare the curve with no correction at all: a warning where the curve predicts significantly worse.

    Both predict relevance with the same noise, so that the difference is due to the curve; it is tested over the
    buckets of queries.
    """
    theta = curve.propensity.ravel()[curve.index_states(cells)]
    with_curve, without = _log_likelihoods(cells, theta), _log_likelihoods(cells, np.ones_like(theta))
    if with_curve is None or without is None:
        return []
    use = with_curve[0] & without[0]
    shown = cells.shown[use].sum()
    if not shown:
        return []
    fitted, plain = (float(2 ** (-values[use].sum() / np.log(2) / shown)) for _, values in (with_curve, without))
    by_bucket = np.bincount(cells.bucket[use], weights=(with_curve[1] - without[1])[use]).astype(np.float64)
    worse = _is_negative(by_bucket[np.unique(cells.bucket[use])])
    sentence = f"Perplexity of held-out clicks: {fitted:.4f} with the curve, {plain:.4f} without correction"
    sentence += "; the curve does not help." if worse else "."
    return [CurveDiagnostic("held_out_perplexity", fitted, worse, sentence)]


def _is_negative(differences: Floats) -> bool:
    """Whether the sum of the differences is significantly below 0, by a one-sided t test."""
    count, spread = differences.size, float(np.std(differences, ddof=1)) if differences.size > 1 else 0.0
    if not spread:
        return False
    return bool(special.stdtr(count - 1, float(differences.mean()) / (spread / np.sqrt(count))) < SIGNIFICANCE)


def _log_likelihoods(cells: Cells, theta: Floats) -> tuple[NDArray[np.bool_], Floats] | None:
    """Which cells are predicted, and the log likelihood of each from the other cells of its pair.

    Relevance is (C + s·m)/(E + s) over the other cells, with the mean m and the strength s of the prior by moments.
    """
    examined = cells.shown * theta
    total = np.bincount(cells.pair, weights=examined, minlength=cells.pairs).astype(np.float64)
    clicks = np.bincount(cells.pair, weights=cells.clicks, minlength=cells.pairs).astype(np.float64)
    if not clicks.sum():
        return None
    mean = float(clicks.sum() / total.sum())
    strength = _estimate_strength(total, clicks, mean)
    others, other_clicks = total[cells.pair] - examined, clicks[cells.pair] - cells.clicks
    relevance = (other_clicks + strength * mean) / (np.maximum(others, 0.0) + strength)
    chance = np.clip(relevance * theta, 1e-9, 1 - 1e-9)
    return others > 1e-9, cells.clicks * np.log(chance) + (cells.shown - cells.clicks) * np.log1p(-chance)


def _estimate_strength(examined: Floats, clicks: Floats, mean: float) -> float:
    """s = m(1 − m)/v − 1, with v the variance of rates between pairs beyond noise, weighted by examinations."""
    enough = examined > 0
    rate, weight = clicks[enough] / examined[enough], examined[enough]
    noise = max(mean * (1 - mean), 1e-12)
    spread = float(np.average((rate - mean) ** 2, weights=weight)) - noise * enough.sum() / float(weight.sum())
    return float(np.clip(noise / spread - 1, *_STRENGTHS)) if spread > 0 else _STRENGTHS[1]
