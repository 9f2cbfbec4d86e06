"""Where there is no difference, each test cries wolf as often as it says it does; intervals cover as they say."""

import numpy as np
import pytest

from udfs.ragged import Floats
from udfs.statistics.ratio import Estimate, estimate_ratio
from udfs.statistics.resample import (
    compute_bootstrap_p,
    compute_percentile_interval,
    compute_randomisation_p,
    draw_poisson_weights,
    draw_signs,
)

SIMULATIONS, REPLICATES, BATCH = 4000, 1000, 100
FALSE_ALARMS, COVERS = (0.039, 0.062), (0.93, 0.97)


def differences(units: int, queries: int, seed: int) -> Floats:
    """Simulations × units × queries of a unit: symmetric, mostly 0, and alike within a unit."""
    random = np.random.default_rng(seed)
    shared = random.laplace(0, 0.15, (SIMULATIONS, units, 1)) if queries > 1 else np.zeros(1)
    own = random.laplace(0, 0.2, (SIMULATIONS, units, queries))
    changed: Floats = np.where(random.random(own.shape) < 0.4, shared + own, 0.0)
    return changed


def estimated(y: Floats, x: Floats) -> Estimate:
    """The estimate of each simulation from y and x of its units."""
    x = np.broadcast_to(x, y.shape)
    sums = [(x != 0).sum(axis=1), y.sum(axis=1), x.sum(axis=1), (y * y).sum(axis=1), (x * y).sum(axis=1)]
    return estimate_ratio(np.stack([*sums, (x * x).sum(axis=1)], axis=-1))


def resampled(y: Floats, size: float) -> tuple[Floats, Floats, Floats, Floats]:
    """p of the sign flips and of the bootstrap, and the bootstrap's interval, per simulation."""
    results = []
    for batch in range(SIMULATIONS // BATCH):
        part = y[batch * BATCH : (batch + 1) * BATCH]
        units = np.random.default_rng(batch).integers(0, 2**63, size=(y.shape[1],), dtype=np.uint64)
        flipped = part @ draw_signs(units, REPLICATES, batch).astype(np.float64)
        p_signs = compute_randomisation_p(part.sum(axis=1), flipped, np.abs(part).sum(axis=1))
        weights = draw_poisson_weights(units, REPLICATES, batch).astype(np.float64)
        means = (part @ weights) / (size * weights.sum(axis=0))
        p_bootstrap = compute_bootstrap_p(part.mean(axis=1) / size, means)
        results.append(np.stack([p_signs, p_bootstrap, *compute_percentile_interval(means, 0.95)]))
    p_signs, p_bootstrap, low, high = np.concatenate(results, axis=1)
    return p_signs, p_bootstrap, low, high


def within(share: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= share <= bounds[1]


@pytest.mark.parametrize(("units", "queries"), [(300, 1), (200, 5)])
def test_tests_and_intervals_are_calibrated(units: int, queries: int) -> None:
    y = differences(units, queries, seed=units).sum(axis=2)
    estimate = estimated(y, np.array(float(queries)))
    low, high = estimate.interval(0.95)
    p_signs, p_bootstrap, b_low, b_high = resampled(y, float(queries))
    alarms = {"t": estimate.p_value(), "randomisation": p_signs, "bootstrap": p_bootstrap}
    shares = {name: float((p < 0.05).mean()) for name, p in alarms.items()}
    assert all(within(share, FALSE_ALARMS) for share in shares.values()), shares
    cover = {"t": float(((low <= 0) & (high >= 0)).mean()), "bootstrap": float(((b_low <= 0) & (b_high >= 0)).mean())}
    assert all(within(share, COVERS) for share in cover.values()), cover


def test_queries_that_hang_together_fool_the_plain_test() -> None:
    y = differences(200, 5, seed=200).reshape(SIMULATIONS, -1)
    assert (estimated(y, np.array(1.0)).p_value() < 0.05).mean() > 0.08


def test_weighted_intervals_cover() -> None:
    random = np.random.default_rng(8)
    values = random.beta(0.5, 1.0, (SIMULATIONS, 400)) * (random.random((SIMULATIONS, 400)) < 0.7)
    weight = random.gamma(1.0, 1.0, values.shape) + 0.1
    low, high = estimated(weight * values, weight).interval(0.95)
    truth = 0.7 * 0.5 / 1.5
    assert within(float(((low <= truth) & (truth <= high)).mean()), COVERS)
