"""Intervention harvesting: every document that was seen at two positions is a small experiment."""

import numpy as np
from scipy.optimize import minimize

from pipelines.propensity.evidence import Evidence, Floats
from pipelines.propensity.registry import Curve, estimator, flat

_RIDGE = 1e-6
_BOUND = 14.0


@estimator("all_pairs", graph=True)
def all_pairs(evidence: Evidence, assumed: Floats) -> Curve:
    """All-pairs estimator (Agarwal et al. 2019), harmonic weights.

    Maximise Σ c_kj·log(p_k·r_kj) + n_kj·log(1 − p_k·r_kj) over k ≠ j, with r_kj = r_jk and p_1 = 1. For given p the
    best r_kj is the root of a quadratic, so only p is searched, with the exact gradient. A very small pull to the
    assumed curve settles what the log leaves open: the level of positions that no document connects with position 1.
    """
    return flat(fit_pairs(evidence.edge_clicks.sum(axis=0), evidence.edge_rest.sum(axis=0), assumed))


def fit_pairs(clicks: Floats, rest: Floats, assumed: Floats) -> Floats:
    """The curve from c[k, j] and n[k, j]."""
    size = clicks.shape[0]
    upper, lower = np.triu_indices(size, 1)
    known = (clicks[upper, lower] + clicks[lower, upper]) > 0
    upper, lower = upper[known], lower[known]
    above, below = (clicks[upper, lower], rest[upper, lower]), (clicks[lower, upper], rest[lower, upper])
    scale = max(float(clicks.sum()), 1.0)
    target = np.log(assumed / assumed[0])[1:]

    def loss(free: Floats) -> tuple[float, Floats]:
        log_p = np.concatenate([[0.0], free])
        p, q = np.exp(log_p[upper]), np.exp(log_p[lower])
        r = _best_relevance(p, q, above, below)
        gradient = np.zeros(size)
        value = 0.0
        for chance, index, (c, n) in ((p, upper, above), (q, lower, below)):
            click = np.clip(chance * r, 1e-300, 1 - 1e-12)
            value += float(np.sum(c * np.log(click) + n * np.log1p(-click)))
            gradient += np.bincount(index, weights=c - n * click / (1 - click), minlength=size)
        away = free - target
        pull = _RIDGE * float(away @ away)
        return -value / scale + pull, -gradient[1:] / scale + 2 * _RIDGE * away

    bounds = [(-_BOUND, _BOUND)] * (size - 1)
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 2_000, "maxfun": 10_000}
    found = minimize(loss, target, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.exp(np.concatenate([[0.0], found.x]))


def _best_relevance(p: Floats, q: Floats, above: tuple[Floats, Floats], below: tuple[Floats, Floats]) -> Floats:
    """The r that maximises the likelihood of one pair of positions: the smaller root of A·r² − B·r + S = 0."""
    (c1, n1), (c2, n2) = above, below
    both = c1 + c2
    a = (both + n1 + n2) * p * q
    b = both * (p + q) + n1 * p + n2 * q
    return np.asarray(2 * both / (b + np.sqrt(np.maximum(b * b - 4 * a * both, 0.0))))
