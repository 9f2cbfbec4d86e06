"""Estimates from sums: equal to scipy's, or to an oracle that looks at every query."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from udfs.ragged import Floats
from udfs.statistics.ratio import Estimate, estimate_ratio
from udfs.statistics.rubin import add_label_variance

CLOSE: Any = {"rtol": 1e-9, "atol": 1e-12}


def draw(seed: int, n: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    return random.beta(0.6, 0.8, n) * (random.random(n) < 0.7), np.ceil(1000 / random.permutation(np.arange(1, n + 1)))


def sum_units(y: Floats, x: Floats) -> Floats:
    """The six sums of one set of units, one entry each; a unit with x = 0 and y = 0 is missing."""
    return np.array([np.count_nonzero((x != 0) | (y != 0)), y.sum(), x.sum(), y @ y, x @ y, x @ x], dtype=np.float64)


def slow(y: Floats, x: Floats) -> tuple[float, float]:
    """Ratio and linearised error, residual by residual."""
    value = sum(y) / sum(x)
    residuals = [a - value * b for a, b in zip(y, x, strict=True)]
    variance = len(y) / (len(y) - 1) * sum(u * u for u in residuals) / sum(x) ** 2
    return value, variance**0.5


@pytest.mark.parametrize("n", [2, 3, 30, 1000])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_a_mean_has_the_t_interval_of_scipy(n: int, confidence: float) -> None:
    values, _ = draw(n, n)
    estimate = estimate_ratio(sum_units(values, np.ones(n)))
    low, high = estimate.interval(confidence)
    expected = stats.t.interval(confidence, n - 1, loc=values.mean(), scale=stats.sem(values))
    np.testing.assert_allclose([low, high], expected, **CLOSE)
    np.testing.assert_allclose(
        estimate.low(confidence), values.mean() - stats.t.ppf(confidence, n - 1) * stats.sem(values)
    )


@pytest.mark.parametrize("n", [2, 5, 400])
def test_the_paired_test_is_that_of_scipy(n: int) -> None:
    (a, _), (b, _) = draw(n, n), draw(n + 1, n)
    estimate = estimate_ratio(sum_units(b - a, np.ones(n)))
    np.testing.assert_allclose(estimate.p_value(), stats.ttest_rel(b, a).pvalue, **CLOSE)


@pytest.mark.parametrize("n", [2, 17, 2000])
def test_weighted_pooled_and_relative_forms_are_linearised(n: int) -> None:
    values, weight = draw(n, n)
    baseline, _ = draw(n + 1, n)
    for y, x in ((weight * values, weight), (values - baseline, baseline + 0.1)):
        estimate = estimate_ratio(sum_units(y, x))
        np.testing.assert_allclose([estimate.value, estimate.stderr], slow(y, x), **CLOSE)


def test_clusters_have_the_cr1_error_of_a_regression_on_a_constant() -> None:
    values, _ = draw(5, 600)
    cluster = np.random.default_rng(6).integers(0, 40, 600)
    y, x = (np.bincount(cluster, weights=w, minlength=40).astype(np.float64) for w in (values, np.ones(600)))
    estimate = estimate_ratio(sum_units(y, x))
    # (X'X)⁻¹ (Σ X_g'u_g u_g'X_g) (X'X)⁻¹ · G/(G−1) · (n−1)/(n−k) with X a column of ones, k = 1
    residual = values - values.mean()
    meat = sum(residual[cluster == g].sum() ** 2 for g in range(40))
    expected = np.sqrt(meat / 600**2 * 40 / 39)
    np.testing.assert_allclose([estimate.stderr, estimate.degrees], [expected, 39], **CLOSE)


def test_equal_values_have_no_spread_and_no_difference_has_p_1() -> None:
    zero = estimate_ratio(sum_units(np.zeros(50), np.ones(50)))
    assert [float(zero.p_value()), *map(float, zero.interval(0.95))] == [1.0, 0.0, 0.0]
    constant = estimate_ratio(sum_units(np.full(50, 0.1), np.ones(50)))
    assert (float(constant.stderr), float(constant.p_value())) == (0.0, 0.0)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_units_have_no_error(n: int) -> None:
    estimate = estimate_ratio(sum_units(np.full(n, 0.5), np.ones(n)))
    assert np.isnan([estimate.stderr, estimate.p_value(), estimate.interval(0.95)[0]]).all()
    assert bool(np.isnan(estimate.value)) == (n == 0)


def test_many_estimates_are_made_at_once() -> None:
    sums = np.stack([sum_units(*draw(seed, 20)) for seed in range(6)]).reshape(2, 3, 6)
    estimate: Estimate = estimate_ratio(sums)
    assert estimate.value.shape == estimate.p_value().shape == (2, 3)
    np.testing.assert_array_equal(estimate.value[1, 2], estimate_ratio(sums[1, 2]).value)


def test_label_error_is_added_as_rubin_says() -> None:
    plain = Estimate(np.array([0.02, 0.02]), np.array([0.01, 0.01]), np.array([399.0, 399.0]))
    total = add_label_variance(plain, np.array([0.0, 0.0001]), 5)
    np.testing.assert_allclose(total.stderr**2, [0.0001, 0.0001 + 1.2 * 0.0001], **CLOSE)
    share = 1.2 / 2.2  # Barnard and Rubin: 1/ν = 1/((M − 1)/λ²) + 1/((ν + 1)/(ν + 3) · ν · (1 − λ))
    expected = 1 / (share**2 / 4 + 1 / (400 / 402 * 399 * (1 - share)))
    np.testing.assert_allclose(total.degrees, [399.0, expected], **CLOSE)


def test_intervals_with_label_error_cover_where_plain_ones_do_not() -> None:
    random = np.random.default_rng(12)
    simulations, n, draws = 2000, 300, 10
    # What is measured is off by a label error shared by all queries; each draw of the labels moves as far.
    shared = random.normal(0, 0.02, simulations)
    d = random.normal(0.05, 0.3, (simulations, n)) + shared[:, None]
    draw_values = random.normal(0, 0.02, (simulations, draws))
    plain = estimate_ratio(np.stack([sum_units(row, np.ones(n)) for row in d]))
    total = add_label_variance(plain, draw_values.var(axis=1, ddof=1), draws)
    covered = [np.mean((e.interval(0.95)[0] <= 0.05) & (e.interval(0.95)[1] >= 0.05)) for e in (plain, total)]
    assert covered[0] < 0.85
    assert 0.93 <= covered[1] <= 0.97
