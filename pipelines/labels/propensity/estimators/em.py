"""The position-based model by expectation maximisation on counts, accelerated."""

from dataclasses import dataclass

import numpy as np

from pipelines.labels.propensity.evidence import Floats, Ints, PositionEvidence
from pipelines.labels.propensity.measure import measure_cells
from pipelines.labels.propensity.registry import Curve, build_flat_curve, estimator

_TINY = 1e-12
_CYCLES = 2_000
_NEWTON = 60
_GAIN = 1e-5  # of the log likelihood in a cycle, at which iteration stops: under 1 % of the error of an estimate
_LOW, _HIGH = 1e-9, 1 - 1e-9  # bounds of both factors


@dataclass(frozen=True)
class PositionFit:
    """Examination per position (or state), attraction per pair, and the log likelihood."""

    examination: Floats
    attraction: Floats
    log_likelihood: float


@estimator("em", measure=measure_cells, cells=True, graph=True)
def em(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """Position-based model (Richardson et al. 2007), P(click) = θ_k·γ_qd, by expectation maximisation to convergence.

    Textbook EM needs a thousand rounds to reach the maximum. Here the best γ for θ and the best θ for γ are solved in
    turn (ECME, Liu and Rubin 1994) and SQUAREM extrapolates the steps, which takes about ten.
    """
    cells = evidence.cells
    fit = fit_counts(cells.pair, cells.position, cells.shown, cells.clicks, assumed)
    return build_flat_curve(fit.examination / fit.examination[0])


def fit_counts(pair: Ints, place: Ints, shown: Floats, clicks: Floats, start: Floats) -> PositionFit:
    """Maximise Σ C·log(θ·γ) + (N − C)·log(1 − θ·γ); `place` indexes θ, `start` is its initial value.

    A pair without clicks has γ = 0 whatever θ is, so only the others are fitted. A place that none of them was shown
    at keeps its initial value, relative to the place with most impressions.
    """
    attraction = np.bincount(pair, weights=clicks).astype(np.float64)
    clicked = attraction > 0
    if not clicked.any():
        return PositionFit(start / start.max(), attraction, 0.0)
    use = clicked[pair]
    dense = np.cumsum(clicked) - 1
    counts = _Counts(pair=dense[pair[use]], place=place[use], clicks=clicks[use], missed=(shown - clicks)[use])
    theta, attraction[clicked], value = _maximise(counts, start)
    return PositionFit(theta, attraction, value)


@dataclass(frozen=True)
class _Counts:
    pair: Ints
    place: Ints
    clicks: Floats
    missed: Floats


def _maximise(counts: _Counts, start: Floats) -> tuple[Floats, Floats, float]:
    """θ, γ and the log likelihood.

    Scaling θ up to a maximum of 1 leaves all products θ·γ as they are and only relaxes the bound on γ, so every step
    ends with it.
    """
    places, place, pair = start.size, counts.place, counts.pair
    total = np.bincount(place, weights=counts.clicks + counts.missed, minlength=places)
    by_place = np.bincount(place, weights=counts.clicks, minlength=places).astype(np.float64)
    by_pair = np.bincount(pair, weights=counts.clicks).astype(np.float64)
    seen = total > 0

    def rescale(theta: Floats) -> Floats:
        return np.asarray(np.where(seen, theta * (_HIGH / theta[seen].max()), _LOW))

    def step(theta: Floats, gamma: Floats, accuracy: float = 1e-6) -> tuple[Floats, Floats, float]:
        gamma = _solve_factor(pair, theta[place], counts.missed, by_pair, gamma, accuracy)
        new = _solve_factor(place, gamma[pair], counts.missed, by_place, theta, accuracy)
        return rescale(new), gamma, log_likelihood(theta[place] * gamma[pair], counts.clicks, counts.missed)

    theta, best = rescale(np.maximum(start, 1e-4 * start.max())), -np.inf
    gamma = np.minimum(by_pair / np.bincount(pair, weights=(counts.clicks + counts.missed) * theta[place]), _HIGH)
    for _ in range(_CYCLES):
        first, gamma, value = step(theta, gamma)
        second, gamma, _ = step(first, gamma)
        leap = rescale(extrapolate(theta, first, second, margin=_LOW))
        after, leap_gamma, leap_value = step(leap, gamma)
        theta, gamma = (after, leap_gamma) if leap_value >= value else (second, gamma)
        if value - best <= _GAIN:
            break
        best = value
    _, gamma, value = step(theta, gamma, 1e-12)
    anchor = int(np.argmax(total))
    return np.where(seen, theta, np.minimum(start * theta[anchor] / start[anchor], 1.0)), gamma, value


def _solve_factor(index: Ints, other: Floats, missed: Floats, clicks: Floats, start: Floats, accuracy: float) -> Floats:
    """One factor x of P(click) = x·y for fixed y (`other`): the root of Σ C = Σ (N − C)·xy/(1 − xy) for each index.

    By Newton steps from `start`; `clicks` are sums by index. The difference of the two sides is concave and falling in
    x, so Newton converges to the root from above.
    """
    factor, weight = start, missed * other
    for _ in range(_NEWTON):
        inverse = 1.0 / np.maximum(1 - other * factor[index], _TINY)
        odds = weight * inverse
        value = clicks - factor * np.bincount(index, weights=odds, minlength=clicks.size)
        slope = np.bincount(index, weights=odds * inverse, minlength=clicks.size)
        new = np.clip(factor + value / np.maximum(slope, _TINY), _LOW, _HIGH)
        change = np.max(np.abs(new - factor), initial=0.0)
        factor = new
        if change < accuracy:
            break
    return factor


def extrapolate(point: Floats, first: Floats, second: Floats, *, margin: float) -> Floats:
    """The SQUAREM step from a point and its next two EM steps (Varadhan and Roland 2008), within (0, 1) by a margin."""
    move, bend = first - point, (second - first) - (first - point)
    length = -max(1.0, float(np.linalg.norm(move) / max(float(np.linalg.norm(bend)), 1e-300)))
    return np.clip(point - 2 * length * move + length**2 * bend, margin, 1 - margin)


def log_likelihood(chance: Floats, clicks: Floats, missed: Floats) -> float:
    """Log likelihood of clicks and misses under the probability of a click."""
    chance = np.clip(chance, _TINY, 1 - _TINY)
    return float(np.sum(clicks * np.log(chance) + missed * np.log1p(-chance)))
