"""Pairs of positions with shared documents: the likelihood of a curve, its gradient and its curvature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from pipelines.labels.propensity.evidence import Floats, Ints, PositionEvidence


@dataclass(frozen=True)
class Edges:
    """Pairs of positions with shared documents, and the clicks at each of the two."""

    upper: Ints
    lower: Ints
    above: tuple[Floats, Floats]  # clicks and rest at the upper position
    below: tuple[Floats, Floats]

    @classmethod
    def of(cls, clicks: Floats, rest: Floats, mask: NDArray[np.bool_]) -> Edges:
        """From c[…, k, j] and n[…, k, j], the edges where mask[k, j]."""
        upper, lower = np.nonzero(np.triu(mask, 1))
        there, back = (..., upper, lower), (..., lower, upper)
        return cls(upper, lower, (clicks[there], rest[there]), (clicks[back], rest[back]))


def score_evidence(log_p: Floats, evidence: PositionEvidence) -> tuple[Floats, Floats]:
    """The gradient by bucket, and the curvature of the whole, at a curve log p (with log p_1 = 0)."""
    total = evidence.edge_clicks.sum(axis=0)
    mask = total + total.T > 0
    whole = Edges.of(total, evidence.edge_rest.sum(axis=0), mask)
    return score_edges(log_p, whole, Edges.of(evidence.edge_clicks, evidence.edge_rest, mask))


def score_edges(log_p: Floats, edges: Edges, parts: Edges) -> tuple[Floats, Floats]:
    """Gradients of the profile log likelihood in log p by part of the log, and the curvature of the whole.

    Profiling out the relevance of an edge leaves (I_j·g_k − I_k·g_j)/(I_k + I_j), with the information
    I_k = (c + n)·m/(1 − m) at the click rate m = p_k·r_kj. The curvature is the Laplacian of the graph of positions.
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
    gradient = (second * slopes[0] - first * slopes[1]) / both
    ends = np.zeros((edges.upper.size, size))
    ends[np.arange(edges.upper.size), edges.upper] = 1.0
    ends[np.arange(edges.upper.size), edges.lower] = -1.0
    return gradient @ ends, ends.T @ (ends * (first * second / both)[:, None])


def _best_relevance(p: Floats, q: Floats, above: tuple[Floats, Floats], below: tuple[Floats, Floats]) -> Floats:
    """The r that maximises the likelihood of one pair of positions: the smaller root of A·r² − B·r + S = 0."""
    (c1, n1), (c2, n2) = above, below
    both = c1 + c2
    a = (both + n1 + n2) * p * q
    b = both * (p + q) + n1 * p + n2 * q
    return np.asarray(2 * both / (b + np.sqrt(np.maximum(b * b - 4 * a * both, 0.0))))


def find_connected_positions(evidence: PositionEvidence, minimum_edge: float) -> NDArray[np.bool_]:
    """Whether documents connect a position with position 1, by edges with clicks and at least this much evidence."""
    clicks = evidence.edge_clicks.sum(axis=0)
    weight = clicks + evidence.edge_rest.sum(axis=0)
    edges = (weight >= minimum_edge) & (clicks + clicks.T > 0)
    _, labels = connected_components(csr_array(edges.astype(np.int8)), directed=False)
    return np.asarray(labels == labels[0])
