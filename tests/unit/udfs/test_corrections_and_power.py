"""Adjusted p-values and power."""

import numpy as np
import pytest
from scipy import stats

from schemas.errors import ConfigurationError
from udfs.ragged import Floats
from udfs.statistics.correct import CORRECTIONS, benjamini_hochberg, holm
from udfs.statistics.power import compute_power, detectable_delta, queries_needed, total_quantile


def slow_holm(p: Floats) -> list[float]:
    """By definition: the largest, over p-values not above one's own, of its multiple by how many are left."""
    m = len(p)
    ordered = sorted(p)
    return [min(1.0, max((m - j) * ordered[j] for j in range(m) if ordered[j] <= value)) for value in p]


@pytest.mark.parametrize("m", [1, 2, 50, 500])
def test_holm_is_its_definition(m: int) -> None:
    p = np.random.default_rng(m).beta(0.3, 1, m)
    np.testing.assert_allclose(holm(p), slow_holm(p), rtol=1e-12)


def test_holm_with_numbers_that_one_can_check() -> None:
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize("m", [1, 2, 50, 500])
def test_benjamini_hochberg_is_that_of_scipy(m: int) -> None:
    p = np.random.default_rng(m).beta(0.3, 1, m)
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p, method="bh"), rtol=1e-12)


@pytest.mark.parametrize("name", sorted(CORRECTIONS))
def test_what_was_not_tested_does_not_count(name: str) -> None:
    p = np.array([np.nan, 0.01, np.nan, 0.2])
    adjusted = CORRECTIONS[name](p)
    np.testing.assert_array_equal(np.isnan(adjusted), np.isnan(p))
    np.testing.assert_allclose(adjusted[[1, 3]], CORRECTIONS[name](p[[1, 3]]))


def test_the_usual_reach_is_2_802() -> None:
    assert total_quantile() == pytest.approx(2.8016, abs=1e-4)
    np.testing.assert_allclose(detectable_delta([0.01, 0.0]), [0.028016, 0.0], atol=1e-6)


def test_so_many_queries_have_the_power_that_was_asked_for() -> None:
    needed = queries_needed(0.3, 0.01)
    assert needed == 7064
    assert compute_power(0.3, 0.01, needed) == pytest.approx(0.8, abs=1e-4)
    assert compute_power(0.3, 0.0, 1000) == pytest.approx(0.05)


def test_a_difference_that_no_number_of_queries_detects_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no number of queries detects a difference of 1e-300"):
        queries_needed(1e300, 1e-300)


def test_power_is_what_simulation_finds() -> None:
    random = np.random.default_rng(4)
    detected = stats.ttest_1samp(random.normal(0.05, 0.4, (4000, 500)), 0, axis=1).pvalue < 0.05
    assert np.mean(detected) == pytest.approx(compute_power(0.4, 0.05, 500), abs=0.02)
