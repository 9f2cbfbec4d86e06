"""Multiple imputation: the error of the queries and the error of uncertain labels combined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.posterior.fit import MAIN_EFFECTS, OWN_REMOVED, POSTERIOR
from udfs.ragged import Bools, Floats
from udfs.statistics.plan import Plan
from udfs.statistics.ratio import Estimate

# Weight of the squared difference between the answers of two priors, with and without interactions, in the variance:
# chosen by the worst of the worlds of `benchmarks/worlds.py`, where smaller weights cover less on thin logs.
MODEL_WEIGHT = 1.0


@dataclass(frozen=True)
class DrawnEstimate:
    """An estimate on drawn labels, with the error of queries and of labels.

    Where `hull` is true, `other` is a second answer that the log cannot tell from the first: that without the factor of
    a system that may have learned from clicks. The interval is then the hull of both intervals.
    """

    first: Estimate
    other: Estimate
    hull: Bools
    label_share: Floats  # of the variance; NaN without draws

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """The two-sided interval, or the hull of two."""
        (low, high), (other_low, other_high) = (each.interval(confidence) for each in (self.first, self.other))
        return (
            np.where(self.hull, np.minimum(low, other_low), low),
            np.where(self.hull, np.maximum(high, other_high), high),
        )

    def p_value(self) -> Floats:
        """That of the answer nearer to 0; 1 where 0 lies between two answers."""
        p, other = self.first.p_value(), self.other.p_value()
        apart = np.sign(self.first.value) * np.sign(self.other.value) <= 0
        return np.where(self.hull, np.where(apart, 1.0, np.maximum(p, other)), p)


def add_draws(estimate: Estimate, means: Floats, hull: Bools, plan: Plan) -> DrawnEstimate:
    """The estimate with the error of its labels: `means` has the estimate in each draw on its last axis, or NaN.

    T = W + (1 + 1/M) · B + c · g², with the variance B between the draws of the posterior and the difference g between
    the means of the draws with main effects only and of the same draws of the posterior.
    """
    posterior, main, own = (_select_draws(means, name, plan) for name in (POSTERIOR, MAIN_EFFECTS, OWN_REMOVED))
    gap = np.zeros_like(estimate.value)
    if main.shape[-1]:
        gap = _average(main - posterior[..., : main.shape[-1]])
    first = _widen(estimate, posterior, gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(first.stderr > 0, 1.0 - (estimate.stderr / first.stderr) ** 2, 0.0)
    undefined = np.isnan(first.stderr)
    first = _choose(undefined, estimate, first)
    other, two = first, np.zeros_like(undefined)
    if own.shape[-1]:
        shifted = Estimate(estimate.value + _average(own - posterior), estimate.stderr, estimate.degrees)
        other, two = _widen(shifted, own, gap), hull & ~undefined
    return DrawnEstimate(first, _choose(~two, first, other), two, np.where(undefined, np.nan, share))


def find_curve_shift(means: Floats, plan: Plan) -> Floats:
    """The change of the estimate for an examination curve whose exponent is one standard deviation larger.

    By regression of the draws of the posterior on their exponents; NaN where these are unknown or do not vary.
    """
    posterior = _select_draws(means, POSTERIOR, plan)
    exponent = np.array(plan.exponents) - np.mean(plan.exponents) if plan.exponents else np.zeros(0)
    spread = float((exponent**2).sum())
    if len(exponent) != posterior.shape[-1] or spread == 0:
        return np.full(means.shape[:-1], np.nan)
    slope = (posterior - posterior[..., :1]) @ exponent / spread
    shift: Floats = slope * np.sqrt(spread / (len(exponent) - 1))
    return shift


def add_label_variance(estimate: Estimate, between: Floats, draws: int) -> Estimate:
    """The estimate with the variance between `draws` sets of drawn labels added.

    T = W + (1 + 1/M) · B on the degrees of freedom of Barnard and Rubin, Biometrika 1999; Rubin, Multiple
    Imputation for Nonresponse in Surveys, 1987.
    """
    added = (1.0 + 1.0 / draws) * between
    within = estimate.stderr**2
    total = within + added
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, added / total, 0.0)
        of_draws = (draws - 1) / share**2
        of_queries = (estimate.degrees + 1) / (estimate.degrees + 3) * estimate.degrees * (1 - share)
        degrees = np.where(share > 0, 1.0 / (1.0 / of_draws + 1.0 / of_queries), estimate.degrees)
    return Estimate(estimate.value, np.sqrt(total), degrees)


def _widen(estimate: Estimate, draws: Floats, gap: Floats) -> Estimate:
    between = (draws - draws[..., :1]).var(axis=-1, ddof=1)  # relative to a draw, so that equal draws have none
    both = add_label_variance(estimate, between, draws.shape[-1])
    return Estimate(both.value, np.sqrt(both.stderr**2 + MODEL_WEIGHT * gap**2), both.degrees)


def _select_draws(means: Floats, name: str, plan: Plan) -> Floats:
    return means[..., plan.find_set(name) or slice(0)]


def _average(draws: Floats) -> Floats:
    mean: Floats = draws.mean(axis=-1)
    return mean


def _choose(where: Bools, one: Estimate, two: Estimate) -> Estimate:
    """The first estimate in some places, the second in the others."""
    return Estimate(
        np.where(where, one.value, two.value),
        np.where(where, one.stderr, two.stderr),
        np.where(where, one.degrees, two.degrees),
    )
