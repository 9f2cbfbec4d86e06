"""The position-based model by expectation maximisation on counts, accelerated."""

from dataclasses import dataclass

import numpy as np

from pipelines.propensity.evidence import Evidence, Floats, Ints
from pipelines.propensity.registry import Curve, estimator, flat

_TINY = 1e-12
_CYCLES = 2_000


@dataclass(frozen=True)
class Fit:
    """Examination per place, attractiveness per pair, and how likely they make the log."""

    examination: Floats
    attraction: Floats
    log_likelihood: float


@estimator("em", cells=True)
def em(evidence: Evidence, assumed: Floats) -> Curve:
    """Position-based model (Richardson et al. 2007), P(click) = θ_k·γ_qd, by expectation maximisation to convergence.

    Plain EM needs a thousand rounds here. For given θ the best γ is found pair by pair (Liu and Rubin 1994, ECME), so
    only θ iterates, and SQUAREM (Varadhan and Roland 2008) extrapolates its steps.
    """
    cells = evidence.cells
    fit = fit_counts(cells.pair, cells.position, cells.shown, cells.clicks, assumed)
    return flat(fit.examination / fit.examination[0])


def fit_counts(pair: Ints, place: Ints, shown: Floats, clicks: Floats, start: Floats) -> Fit:
    """Maximise Σ C·log(θ·γ) + (N − C)·log(1 − θ·γ); `place` indexes θ, `start` is a first guess at it."""
    places = start.size
    total = np.bincount(place, weights=shown, minlength=places)
    seen = total > 0
    missed = shown - clicks
    state = {"gamma": np.zeros(0)}

    def step(theta: Floats) -> tuple[Floats, float]:
        gamma = best_attraction(pair, theta[place], shown, clicks, state["gamma"])
        state["gamma"] = gamma
        t, g = theta[place], gamma[pair]
        value = log_likelihood(t * g, clicks, missed)
        looked = clicks + missed * t * (1 - g) / np.maximum(1 - t * g, _TINY)
        new = np.bincount(place, weights=looked, minlength=places)
        return np.where(seen, new / np.maximum(total, _TINY), theta), value

    theta = np.clip(start / start.max() * 0.95, 1e-4, 1 - 1e-6)
    best = -np.inf
    for _ in range(_CYCLES):
        first, value = step(theta)
        second, _ = step(first)
        move, bend = first - theta, (second - first) - (first - theta)
        length = -max(1.0, float(np.linalg.norm(move) / max(float(np.linalg.norm(bend)), 1e-300)))
        leap = np.clip(theta - 2 * length * move + length**2 * bend, 1e-9, 1 - 1e-9)
        after, leapt = step(leap)
        theta = after if leapt >= value else second
        if abs(value - best) <= 1e-11 * abs(value) and np.max(np.abs(second - first)) < 1e-7:
            break
        best = value
    _, value = step(theta)
    return Fit(theta, state["gamma"], value)


def log_likelihood(chance: Floats, clicks: Floats, missed: Floats) -> float:
    """Of clicks and their absence, given the chance of a click."""
    chance = np.clip(chance, _TINY, 1 - _TINY)
    return float(np.sum(clicks * np.log(chance) + missed * np.log1p(-chance)))


def best_attraction(pair: Ints, theta: Floats, shown: Floats, clicks: Floats, start: Floats) -> Floats:
    """The γ of each pair that solves Σ C = Σ (N − C)·θγ/(1 − θγ), by Newton steps from the last solution.

    The difference of the two sides is concave and falling in γ, so Newton comes down to the root from above.
    """
    pairs = int(pair.max()) + 1 if pair.size else 0
    total = np.bincount(pair, weights=clicks, minlength=pairs)
    missed = shown - clicks
    looked = np.bincount(pair, weights=shown * theta, minlength=pairs)
    gamma = start if start.size == pairs else np.clip(total / np.maximum(looked, _TINY), 0, 1 - 1e-9)
    for _ in range(60):
        inverse = 1.0 / np.maximum(1 - theta * gamma[pair], _TINY)
        value = total - np.bincount(pair, weights=missed * theta * gamma[pair] * inverse, minlength=pairs)
        slope = np.bincount(pair, weights=missed * theta * inverse**2, minlength=pairs)
        new = np.clip(gamma + value / np.maximum(slope, _TINY), 0, 1 - 1e-9)
        change = np.max(np.abs(new - gamma), initial=0.0)
        gamma = np.where(total > 0, new, 0.0)
        if change < 1e-12:
            break
    return gamma
