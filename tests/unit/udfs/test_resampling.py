"""Bootstrap weights and sign flips: their distribution, and that nothing but the query decides them."""

from itertools import product

import numpy as np
import pytest

from udfs.statistics.resample import (
    compute_bootstrap_p,
    compute_percentile_interval,
    compute_randomisation_p,
    draw_poisson_weights,
    draw_signs,
)

UNITS = np.random.default_rng(0).integers(0, 2**63, 2000).astype(np.uint64)


def test_weights_are_poisson_with_mean_1() -> None:
    weights = draw_poisson_weights(UNITS, 1000, 7)
    share = np.bincount(weights.ravel(), minlength=6)[:6] / weights.size
    np.testing.assert_allclose(share, np.exp(-1) / np.array([1, 1, 2, 6, 24, 120]), atol=1e-3)
    # neither replicates of a unit nor units of a replicate move together
    for way in (weights, weights.T):
        together = np.corrcoef(way[:200].astype(float))[np.triu_indices(200, 1)]
        assert abs(together.mean()) < 2e-3


def test_signs_are_fair() -> None:
    flips = draw_signs(UNITS, 1000, 7)
    assert set(np.unique(flips)) == {-1, 1}
    assert abs(flips.mean()) < 3e-3
    assert np.abs(flips.astype(float) @ np.ones(1000)).max() < 6 * np.sqrt(1000)


@pytest.mark.parametrize("draw", [draw_poisson_weights, draw_signs])
def test_draws_depend_on_unit_replicate_and_seed_alone(draw: object) -> None:
    assert callable(draw)
    whole = draw(UNITS, 100, 1)
    order = np.random.default_rng(1).permutation(len(UNITS))
    np.testing.assert_array_equal(draw(UNITS[order], 100, 1), whole[order])
    np.testing.assert_array_equal(draw(UNITS, 37, 1), whole[:, :37])
    assert (draw(UNITS, 100, 2) != whole).mean() > 0.4


def test_the_randomisation_test_nears_the_exact_one() -> None:
    d = np.array([0.3, -0.1, 0.25, 0.0, 0.4, -0.05, 0.2, 0.15, -0.3, 0.35])
    every = np.array([np.dot(flip, d) for flip in product((-1, 1), repeat=len(d))])
    exact = np.mean(np.abs(every) >= abs(d.sum()) - 1e-12)
    b = 100_000
    flipped = draw_signs(UNITS[:10], b, 3).T.astype(float) @ d
    p = compute_randomisation_p(np.array(d.sum()), flipped, np.array(np.abs(d).sum()))
    assert float(p) == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / b))


def test_a_randomisation_p_is_never_0_and_1_without_differences() -> None:
    observed, flipped = np.array([5.0, 0.0]), np.zeros((2, 99))
    np.testing.assert_allclose(compute_randomisation_p(observed, flipped, observed), [0.01, 1.0])


def test_the_bootstrap_error_is_that_of_the_mean() -> None:
    values = np.random.default_rng(2).beta(0.5, 1, 2000)
    weights = draw_poisson_weights(UNITS, 4000, 5).astype(float)
    replicates = (values @ weights) / weights.sum(axis=0)
    stderr = values.std(ddof=1) / np.sqrt(2000)
    assert replicates.std() == pytest.approx(stderr, rel=0.04)
    low, high = compute_percentile_interval(replicates, 0.95)
    np.testing.assert_allclose([low, high], values.mean() + stderr * 1.96 * np.array([-1, 1]), atol=0.15 * stderr)
    assert float(
        compute_bootstrap_p(np.array(1.96 * stderr), replicates - values.mean() + 1.96 * stderr)
    ) == pytest.approx(0.05, abs=0.015)


def test_a_replicate_that_drew_nothing_is_left_out() -> None:
    replicates = np.array([[np.nan, 1.0, 2.0, 3.0], [np.nan] * 4])
    low, high = compute_percentile_interval(replicates, 0.5)
    np.testing.assert_allclose([low[0], high[0]], [1.5, 2.5])
    assert np.isnan([low[1], high[1]]).all()
