"""Clicks that come from trust in the ranking rather than from relevance: a sensitivity analysis."""

import numpy as np

from pipelines.labels.propensity.estimators.em import extrapolate, log_likelihood
from pipelines.labels.propensity.evidence import Cells, Floats, PositionEvidence
from pipelines.labels.propensity.registry import Curve, build_flat_curve, estimator

_TINY = 1e-12
_CYCLES = 500
_TRUST = 0.1  # initial trust at position 1; it falls as 1/k


@estimator("trust_bias", cells=True, graph=True)
def trust_bias(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """P(click) = θ_k·(γ + ε_k·(1 − γ)) = α_k·γ + β_k (Agarwal et al. 2019; affine correction, Vardasbi et al. 2020).

    By expectation maximisation with SQUAREM. Relevance is then (clicks − Σ N·β)/(Σ N·α). A log hardly
    separates θ from ε, so this shows how far the labels depend on trust; it is not a default.
    """
    theta, trust = fit_trust(evidence.cells, assumed)
    slope = theta * (1 - trust)
    return build_flat_curve(slope / slope[0], offset=theta * trust)


def fit_trust(cells: Cells, start: Floats) -> tuple[Floats, Floats]:
    """θ and ε by position."""
    places, pairs = start.size, cells.pairs
    theta = np.clip(start / start.max() * 0.95, 1e-3, 0.99)
    trust = _TRUST / np.arange(1, places + 1)
    examined = np.bincount(cells.pair, weights=cells.shown * theta[cells.position], minlength=pairs)
    clicked = np.bincount(cells.pair, weights=cells.clicks, minlength=pairs)
    gamma = np.clip(clicked / np.maximum(examined, _TINY), 0.01, 0.9)
    point = np.concatenate([theta, trust, gamma])
    for _ in range(_CYCLES):
        first = _step(point, cells, places)
        second = _step(first, cells, places)
        leap = extrapolate(point, first, second, margin=1e-6)
        better = _score(leap, cells, places) >= _score(second, cells, places)
        new = _step(leap, cells, places) if better else second
        if np.max(np.abs(new[: 2 * places] - point[: 2 * places])) < 1e-6:
            break
        point = new
    return point[:places], point[places : 2 * places]


def _unpack(point: Floats, cells: Cells, places: int) -> tuple[Floats, Floats, Floats]:
    theta, trust = point[:places][cells.position], point[places : 2 * places][cells.position]
    return theta, trust, point[2 * places :][cells.pair]


def _score(point: Floats, cells: Cells, places: int) -> float:
    theta, trust, gamma = _unpack(point, cells, places)
    return log_likelihood(theta * (gamma + trust * (1 - gamma)), cells.clicks, cells.shown - cells.clicks)


def _step(point: Floats, cells: Cells, places: int) -> Floats:
    theta, trust, gamma = _unpack(point, cells, places)
    missed = cells.shown - cells.clicks
    attraction = np.maximum(gamma + trust * (1 - gamma), _TINY)
    passed = np.maximum(1 - theta * attraction, _TINY)
    read_and_left = missed * theta * (1 - gamma) * (1 - trust) / passed
    trusted = cells.clicks * (1 - gamma) * trust / attraction
    relevant = cells.clicks * gamma / attraction + missed * (1 - theta) * gamma / passed

    def by_place(values: Floats) -> Floats:
        return np.asarray(np.bincount(cells.position, weights=values, minlength=places))

    new_theta = by_place(cells.clicks + read_and_left) / np.maximum(by_place(cells.shown), _TINY)
    new_trust = by_place(trusted) / np.maximum(by_place(trusted + read_and_left), _TINY)
    size = point.size - 2 * places
    shown = np.bincount(cells.pair, weights=cells.shown, minlength=size)
    new_gamma = np.bincount(cells.pair, weights=relevant, minlength=size) / np.maximum(shown, _TINY)
    return np.concatenate([new_theta, new_trust, new_gamma])
