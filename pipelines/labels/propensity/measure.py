"""Information of fitted curves: from the counts of single pairs, from click rates, or by a jackknife."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pipelines.labels.propensity.evidence import Cells, Floats, Ints, PositionEvidence
from pipelines.labels.propensity.information import Measurement, combine_information, invert
from pipelines.labels.propensity.registry import Curve, FitFunction

_STEP = 1.0  # largest correction of log θ
_BIAS = 0.5  # share of the correction that counts as error
_IDENTIFIED = 100.0  # variance of log θ from which on a state counts as not identified


@dataclass(frozen=True)
class PositionScores:
    """Gradients of the log likelihood by bucket, and its curvature, in log θ of positions 2, 3, …"""

    log_theta: Floats
    curvature: Floats
    scores: Floats
    identified: NDArray[np.bool_] | None = None  # [position, history]

    def measure(self) -> Measurement:
        """The measurement, of a curve that solves the gradient."""
        used = np.any(self.scores != 0, axis=1)
        centred = self.scores[used] - self.scores.sum(axis=0) / max(int(used.sum()), 1)
        return Measurement(self.log_theta, combine_information(self.curvature, centred), self.identified)


def measure_cells(evidence: PositionEvidence, curve: Curve) -> Measurement:
    """Information from pairs seen in several states (a position, or a position and a history of clicks).

    Where counts are thin, the maximum of the likelihood is biased, but the gradients of `score_cells` are not: one
    Newton step along them corrects the curve, and half of it counts as error.
    """
    cells = score_cells(evidence, curve)
    total = cells.scores.sum(axis=0)
    correction = np.clip(invert(cells.curvature) @ total, -_STEP, _STEP)
    used = np.any(cells.scores != 0, axis=1)
    scores = cells.scores[used] - total * (_BIAS / max(int(used.sum()), 1))
    information = combine_information(cells.curvature, scores)
    return Measurement(cells.log_theta + correction, information, cells.identified, correction)


def measure_by_jackknife(
    fit: FitFunction, evidence: PositionEvidence, curve: Curve, binomial: PositionScores
) -> Measurement:
    """Information from refits without one bucket of queries at a time, combined with the binomial part."""
    used = np.flatnonzero(evidence.shown.sum(axis=(1, 2)) > 0)
    if used.size < 2:
        return binomial.measure()
    positions = curve.by_position(evidence)
    parts = [evidence.without(int(bucket)) for bucket in used]
    refits = [np.log(np.maximum(fit(part, positions).by_position(part)[1:], 1e-12)) for part in parts]
    apart = (np.array(refits) - np.mean(refits, axis=0)) * ((used.size - 1) / used.size)
    return replace(binomial, scores=apart @ binomial.curvature).measure()


def score_rates(shown: Floats, clicks: Floats) -> PositionScores:
    """Gradients of θ_k = r_k/r_1, r = clicks/shown, by bucket and position; half a click where there is none."""
    total = shown.sum(axis=0)
    rate = np.where(clicks.sum(axis=0) > 0, clicks.sum(axis=0), np.minimum(0.5, total / 2)) / np.maximum(total, 1.0)
    odds = np.minimum(rate, 1 - 1e-6)
    information = total * odds / (1 - odds)
    parts = (clicks - shown * rate) / (1 - odds) * (clicks.sum(axis=0) > 0)
    share = information / max(float(information.sum()), 1e-300)
    scores = parts - parts.sum(axis=1, keepdims=True) * share
    curvature = np.diag(information) - np.outer(information, share)
    seen = (rate > 0) & (rate[0] > 0)
    curvature[~seen], curvature[:, ~seen] = 0.0, 0.0
    log_theta = np.log(np.where(seen, rate, 1.0) / np.where(seen, rate[0], 1.0))
    return PositionScores(log_theta=log_theta[1:], curvature=curvature[1:, 1:], scores=scores[:, 1:])


def score_cells(evidence: PositionEvidence, curve: Curve) -> PositionScores:
    """Gradients by position, averaged over the states of a position that are identified.

    States that no pair connects with position 1 are not identified.
    """
    cells, width = evidence.cells, curve.propensity.shape[1]
    present, state = np.unique(curve.index_states(cells), return_inverse=True)
    theta = np.maximum(curve.propensity.ravel()[present], 1e-12)
    curvature, scores = _score_states(cells, state, theta, evidence.shown.shape[0])
    below = present // width > 0
    covariance = np.zeros_like(curvature)
    covariance[np.ix_(below, below)] = invert(curvature[np.ix_(below, below)])
    certain = np.diag(covariance) < _IDENTIFIED
    identified = np.zeros(curve.propensity.size, dtype=np.bool_)
    identified[present] = certain
    shown = np.bincount(state, weights=cells.shown).astype(np.float64)
    positions, averages = _average_states(present // width, shown, theta, certain, evidence.positions)
    influence = averages @ covariance
    seen = positions > 0
    seen[0] = False
    at_position = np.zeros((seen.size, seen.size))
    at_position[np.ix_(seen, seen)] = np.linalg.inv((influence @ averages.T)[np.ix_(seen, seen)])
    return PositionScores(
        log_theta=np.log(np.where(seen, positions, 1.0))[1:],
        curvature=at_position[1:, 1:],
        scores=(scores @ influence.T @ at_position)[:, 1:],
        identified=identified.reshape(curve.propensity.shape),
    )


def _score_states(cells: Cells, state: Ints, theta: Floats, buckets: int) -> tuple[Floats, Floats]:
    """Curvature and gradients by bucket in log θ of the states.

    Of its clicks C, a pair expects N·θ·γ in each state, with γ = C/Σ N·θ. The gradient of a state is Σ (C − N·θ·γ) over
    its pairs: 0 on average at the true curve, however thin the log.
    """
    examined = cells.shown * theta[state]
    total = np.bincount(cells.pair, weights=examined, minlength=cells.pairs)
    clicks = np.bincount(cells.pair, weights=cells.clicks, minlength=cells.pairs)
    share = examined / np.maximum(total, 1e-300)[cells.pair]
    expected = share * clicks[cells.pair]
    places, shape = (cells.pair, state), (cells.pairs, theta.size)
    overlap = (csr_array((expected, places), shape=shape).T @ csr_array((share, places), shape=shape)).toarray()
    scores = np.zeros((buckets, theta.size))
    np.add.at(scores, (cells.bucket, state), cells.clicks - expected)
    return np.diag(np.bincount(state, weights=expected, minlength=theta.size)) - overlap, scores


def _average_states(
    position: Ints, shown: Floats, theta: Floats, certain: NDArray[np.bool_], size: int
) -> tuple[Floats, Floats]:
    """θ by position as the mean of its identified states (of all where none is), and ∂ log θ_k/∂ log θ_state."""
    has_certain = np.bincount(position, weights=certain, minlength=size) > 0
    weight = shown * (certain | ~has_certain[position])
    part = weight * theta / np.maximum(np.bincount(position, weights=weight, minlength=size), 1e-300)[position]
    mean = np.bincount(position, weights=part, minlength=size)
    averages = np.zeros((size, theta.size))
    averages[position, np.arange(theta.size)] = part / np.maximum(mean, 1e-300)[position]
    return mean / (mean[0] or 1.0), averages
