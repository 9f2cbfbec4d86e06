"""What a log says about a curve: log θ by position with its information, from gradients by bucket of queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.labels.propensity.evidence import Floats

_BUCKETS = 50.0  # buckets that the binomial variance counts for beside the variance between buckets
_ALONE = 2.0  # assumed overdispersion where one bucket has all the evidence
_RIDGE = 1e-4  # information in directions that the log says nothing about: a standard deviation of 100


@dataclass(frozen=True)
class Measurement:
    """log θ of positions 2, 3, … as measured, with the inverse of its covariance; 0 where the log says nothing."""

    log_theta: Floats
    information: Floats
    identified: NDArray[np.bool_] | None = None  # [position, history]; all where None
    correction: Floats | None = None  # what was added to the log θ of the fitted curve

    @property
    def variance(self) -> Floats:
        """The variance of log θ by position, on its own."""
        return np.asarray(np.diag(invert(self.information)))


def invert(information: Floats) -> Floats:
    """The covariance of an information matrix, wide in directions without information."""
    return np.asarray(np.linalg.inv(information + _RIDGE * np.eye(information.shape[0])))


def combine_information(curvature: Floats, scores: Floats) -> Floats:
    """The information of an estimate, H·J⁻¹·H: curvature H, and J the variance of the gradient.

    J combines the variance between buckets of queries with the binomial one, which is H itself: weighted by the number
    of buckets, so that one query or three give no interval that is too narrow or absurdly wide. The gradient in total,
    of an estimate that does not solve it, counts as bias.
    """
    values, vectors = np.linalg.eigh(curvature)
    keep = values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)
    if not keep.any():
        return np.zeros_like(curvature)
    root = vectors[:, keep] * np.sqrt(values[keep])
    white = scores[np.any(scores != 0, axis=1)] @ (vectors[:, keep] / np.sqrt(values[keep]))
    size, count = int(keep.sum()), white.shape[0]
    apart = white - white.mean(axis=0) if count else white
    between = apart.T @ apart * (count / max(count - 1, 1))
    scale = max(1.0, float(np.trace(between)) / size) if count > 1 else _ALONE
    total = white.sum(axis=0)
    variance = (count * between + _BUCKETS * scale * np.eye(size)) / (count + _BUCKETS) + np.outer(total, total)
    return np.asarray(root @ np.linalg.inv(variance) @ root.T)
