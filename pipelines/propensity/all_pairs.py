"""Intervention harvesting: every document that was seen at two positions is a small experiment."""

import numpy as np

from pipelines.propensity.evidence import Evidence, Floats, Ints
from pipelines.propensity.registry import Curve, estimator, flat

_RIDGE = 1e-9
_BOUND = 14.0
_ROUNDS = 200


@estimator("all_pairs", graph=True)
def all_pairs(evidence: Evidence, assumed: Floats) -> Curve:
    """All-pairs estimator (Agarwal et al. 2019), harmonic weights.

    Maximise Σ c_kj·log(p_k·r_kj) + n_kj·log(1 − p_k·r_kj) over k ≠ j, with r_kj = r_jk and p_1 = 1. A vanishing pull
    to the assumed curve settles what the log leaves open: the level of positions that no document connects with 1.
    """
    return flat(fit_pairs(evidence.edge_clicks.sum(axis=0), evidence.edge_rest.sum(axis=0), assumed))


def fit_pairs(clicks: Floats, rest: Floats, assumed: Floats) -> Floats:
    """The curve from c[k, j] and n[k, j], by Fisher scoring on log p.

    For given p the best r_kj is the root of a quadratic. What an edge then says of log p_k − log p_j has information
    I_k·I_j/(I_k + I_j), with I_k = (c + n)·m/(1 − m) at the click rate m = p_k·r_kj: the matrix to solve is the
    Laplacian of the graph of positions.
    """
    size = clicks.shape[0]
    upper, lower = np.triu_indices(size, 1)
    known = (clicks[upper, lower] + clicks[lower, upper]) > 0
    upper, lower = upper[known], lower[known]
    above, below = (clicks[upper, lower], rest[upper, lower]), (clicks[lower, upper], rest[lower, upper])
    target = np.log(assumed / assumed[0])
    pull = _RIDGE * max(float(clicks.sum()), 1.0)
    log_p = target.copy()
    for _ in range(_ROUNDS):
        gradient, laplacian = _score(log_p, upper, lower, above, below)
        gradient -= pull * (log_p - target)
        laplacian[np.diag_indices(size)] += pull
        step = np.zeros(size)
        step[1:] = np.linalg.solve(laplacian[1:, 1:], gradient[1:])
        # A step far beyond where the approximation holds would leave the range where click rates are below 1.
        step *= min(1.0, 1.0 / max(float(np.max(np.abs(step))), 1e-300))
        log_p = np.clip(log_p + step, -_BOUND, _BOUND)
        if np.max(np.abs(step)) < 1e-13:
            break
    return np.asarray(np.exp(log_p))


def _score(
    log_p: Floats, upper: Ints, lower: Ints, above: tuple[Floats, Floats], below: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Gradient of the log likelihood in log p, relevances profiled out, and its expected curvature."""
    size = log_p.size
    p, q = np.exp(log_p[upper]), np.exp(log_p[lower])
    r = _best_relevance(p, q, above, below)
    gradient = np.zeros(size)
    information = []
    for chance, index, (c, n) in ((p, upper, above), (q, lower, below)):
        odds = np.clip(chance * r, 1e-300, 1 - 1e-9)
        odds = odds / (1 - odds)
        gradient += np.bincount(index, weights=c - n * odds, minlength=size)
        information.append((c + n) * odds)
    first, second = information
    weight = np.zeros((size, size))
    weight[upper, lower] = first * second / np.maximum(first + second, 1e-300)
    weight += weight.T
    return gradient, np.diag(weight.sum(axis=1)) - weight


def _best_relevance(p: Floats, q: Floats, above: tuple[Floats, Floats], below: tuple[Floats, Floats]) -> Floats:
    """The r that maximises the likelihood of one pair of positions: the smaller root of A·r² − B·r + S = 0."""
    (c1, n1), (c2, n2) = above, below
    both = c1 + c2
    a = (both + n1 + n2) * p * q
    b = both * (p + q) + n1 * p + n2 * q
    return np.asarray(2 * both / (b + np.sqrt(np.maximum(b * b - 4 * a * both, 0.0))))
