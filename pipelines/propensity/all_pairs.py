"""Intervention harvesting: every document that was seen at two positions is a small experiment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from pipelines.propensity.evidence import Evidence, Floats, Ints
from pipelines.propensity.power import toward_power
from pipelines.propensity.registry import Curve, estimator, flat

_RIDGE = 1e-9
_BOUND = 14.0
_ROUNDS = 200


@estimator("all_pairs", graph=True)
def all_pairs(evidence: Evidence, assumed: Floats) -> Curve:
    """All-pairs estimator (Agarwal et al. 2019), harmonic weights.

    Maximise Σ c_kj·log(p_k·r_kj) + n_kj·log(1 − p_k·r_kj) over k ≠ j, with r_kj = r_jk and p_1 = 1. A vanishing pull
    to the assumed curve settles what the log leaves open: the level of positions that no document connects with 1.
    Then positions are pulled to a power of k, as far as their distance from it is no more than noise.
    """
    clicks, rest = evidence.edge_clicks, evidence.edge_rest
    free = fit_pairs(clicks.sum(axis=0), rest.sum(axis=0), assumed)
    linked, covariance = spread_of(free, clicks, rest)
    free[linked] = toward_power(free[linked], linked + 1, covariance)
    return flat(free)


@dataclass(frozen=True)
class Edges:
    """The pairs of positions that documents were seen at, and clicks, on either side."""

    upper: Ints
    lower: Ints
    above: tuple[Floats, Floats]  # clicks and rest at the upper position
    below: tuple[Floats, Floats]

    @classmethod
    def of(cls, clicks: Floats, rest: Floats, known: NDArray[np.bool_]) -> Edges:
        """From c[…, k, j] and n[…, k, j], the edges that are known[k, j]."""
        upper, lower = np.nonzero(np.triu(known, 1))
        there, back = (..., upper, lower), (..., lower, upper)
        return cls(upper, lower, (clicks[there], rest[there]), (clicks[back], rest[back]))


def fit_pairs(clicks: Floats, rest: Floats, assumed: Floats) -> Floats:
    """The curve from c[k, j] and n[k, j], by Fisher scoring on log p.

    For given p the best r_kj is the root of a quadratic. What an edge then says of log p_k − log p_j has information
    I_k·I_j/(I_k + I_j), with I_k = (c + n)·m/(1 − m) at the click rate m = p_k·r_kj: the matrix to solve is the
    Laplacian of the graph of positions.
    """
    size = clicks.shape[0]
    edges = Edges.of(clicks, rest, clicks + clicks.T > 0)
    target = np.log(assumed / assumed[0])
    pull = _RIDGE * max(float(clicks.sum()), 1.0)
    log_p = target.copy()
    for _ in range(_ROUNDS):
        score, laplacian = _score(log_p, edges, edges)
        gradient = score[0] - pull * (log_p - target)
        laplacian[np.diag_indices(size)] += pull
        step = np.zeros(size)
        step[1:] = np.linalg.solve(laplacian[1:, 1:], gradient[1:])
        # A step far beyond where the approximation holds would leave the range where click rates are below 1.
        step *= min(1.0, 1.0 / max(float(np.max(np.abs(step))), 1e-300))
        log_p = np.clip(log_p + step, -_BOUND, _BOUND)
        if np.max(np.abs(step)) < 1e-13:
            break
    return np.asarray(np.exp(log_p))


def spread_of(curve: Floats, clicks: Floats, rest: Floats) -> tuple[Ints, Floats]:
    """The positions below 1 that documents connect with it, and the covariance of log p there.

    From c[b, k, j] and n[b, k, j] by bucket b, the sandwich H⁻¹·(Σ_b s_b·s_bᵀ)·H⁻¹: it allows for impressions that
    serve several edges, which the curvature H alone counts as many times.
    """
    total = clicks.sum(axis=0)
    known = total + total.T > 0
    _, part = connected_components(csr_array(known), directed=False)
    linked = np.flatnonzero(part == part[0])[1:]
    whole, each = Edges.of(total, rest.sum(axis=0), known), Edges.of(clicks, rest, known)
    score, laplacian = _score(np.log(curve), whole, each)
    filled = max(int(np.count_nonzero(clicks.sum(axis=(1, 2)))), 2)
    influence = np.linalg.solve(laplacian[np.ix_(linked, linked)], score[:, linked].T)
    return linked, influence @ influence.T * filled / (filled - 1)


def _score(log_p: Floats, edges: Edges, parts: Edges) -> tuple[Floats, Floats]:
    """Gradients of the log likelihood in log p by part of the log, relevances profiled out, and the whole's curvature.

    What an edge says of its relevance is taken out of what it says of its positions: (I_j·g_k − I_k·g_j)/(I_k + I_j).
    """
    size = log_p.size
    p, q = np.exp(log_p[edges.upper]), np.exp(log_p[edges.lower])
    r = _best_relevance(p, q, edges.above, edges.below)
    slopes, information = [], []
    for chance, (c, n), (part_c, part_n) in ((p, edges.above, parts.above), (q, edges.below, parts.below)):
        odds = np.clip(chance * r, 1e-300, 1 - 1e-9)
        odds = odds / (1 - odds)
        slopes.append(np.atleast_2d(part_c - part_n * odds))
        information.append((c + n) * odds)
    (first, second), both = information, np.maximum(sum(information), 1e-300)
    told = (second * slopes[0] - first * slopes[1]) / both
    ends = np.zeros((edges.upper.size, size))
    ends[np.arange(edges.upper.size), edges.upper] = 1.0
    ends[np.arange(edges.upper.size), edges.lower] = -1.0
    return told @ ends, ends.T @ (ends * (first * second / both)[:, None])


def _best_relevance(p: Floats, q: Floats, above: tuple[Floats, Floats], below: tuple[Floats, Floats]) -> Floats:
    """The r that maximises the likelihood of one pair of positions: the smaller root of A·r² − B·r + S = 0."""
    (c1, n1), (c2, n2) = above, below
    both = c1 + c2
    a = (both + n1 + n2) * p * q
    b = both * (p + q) + n1 * p + n2 * q
    return np.asarray(2 * both / (b + np.sqrt(np.maximum(b * b - 4 * a * both, 0.0))))
