"""Intervention harvesting: every document that was seen at two positions is a small experiment."""

from __future__ import annotations

import numpy as np

from pipelines.labels.propensity.edges import Edges, score_edges, score_evidence
from pipelines.labels.propensity.evidence import Floats, PositionEvidence
from pipelines.labels.propensity.information import Measurement
from pipelines.labels.propensity.measure import PositionScores
from pipelines.labels.propensity.power import ETA_DEVIATION, compute_slopes
from pipelines.labels.propensity.registry import Curve, build_flat_curve, estimator

_DEVIATION = 1.0  # of log θ from the assumed curve in the fit: wide, the curve is pulled afterwards
_ROUNDS = 200


def measure_pairs(evidence: PositionEvidence, curve: Curve) -> Measurement:
    """Information of the edges, by the variance of their gradients between buckets of queries."""
    log_p = np.log(curve.propensity[:, 0])
    scores, curvature = score_evidence(log_p, evidence)
    return PositionScores(log_theta=log_p[1:], curvature=curvature[1:, 1:], scores=scores[:, 1:]).measure()


@estimator("all_pairs", measure=measure_pairs, graph=True)
def all_pairs(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """All-pairs estimator (Agarwal et al. 2019), harmonic weights.

    Maximise Σ c_kj·log(p_k·r_kj) + n_kj·log(1 − p_k·r_kj) over k ≠ j, with r_kj = r_jk, p_1 = 1 and a wide prior around
    the assumed curve, which decides where no document connects a position with position 1.
    """
    return build_flat_curve(fit_pairs(evidence.edge_clicks.sum(axis=0), evidence.edge_rest.sum(axis=0), assumed))


def fit_pairs(clicks: Floats, rest: Floats, assumed: Floats) -> Floats:
    """The curve from c[k, j] and n[k, j], by Fisher scoring on log p; for fixed p, r_kj is the root of a quadratic."""
    edges = Edges.of(clicks, rest, clicks + clicks.T > 0)
    target = np.log(assumed / assumed[0])
    slope = compute_slopes(target.size)
    prior = np.linalg.inv(_DEVIATION**2 * np.eye(slope.size) + ETA_DEVIATION**2 * np.outer(slope, slope))
    log_p = target.copy()
    for _ in range(_ROUNDS):
        score, laplacian = score_edges(log_p, edges, edges)
        gradient = score[0][1:] - prior @ (log_p - target)[1:]
        step = np.linalg.solve(laplacian[1:, 1:] + prior, gradient)
        # Limit the step: a long one would leave the range where click rates are below 1.
        step *= min(1.0, 1.0 / max(float(np.max(np.abs(step), initial=0.0)), 1e-300))
        log_p[1:] += step
        if np.max(np.abs(step), initial=0.0) < 1e-12:
            break
    return np.asarray(np.exp(log_p))
