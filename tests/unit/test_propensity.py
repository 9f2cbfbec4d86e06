"""Estimators find the curve that a log was drawn with."""

import numpy as np
import pytest

from pipelines.propensity.all_pairs import all_pairs, fit_pairs
from pipelines.propensity.em import fit_counts, log_likelihood
from pipelines.propensity.estimators import estimator_named
from pipelines.propensity.evidence import Evidence, Floats
from pipelines.propensity.registry import ESTIMATORS
from pipelines.propensity.trust_bias import fit_trust
from schemas.errors import ConfigurationError
from tests.unit.drawn import Log, draw_log

TRUE = 1 / np.arange(1.0, 11.0)
FLAT = np.ones(10)
FOUR = [0.25] * 4
LOPSIDED = [0.85, 0.10, 0.05]


def error_of(curve: Floats, true: Floats = TRUE) -> float:
    return float(np.mean(np.abs(curve / curve[0] / true - 1)))


def evidence_of(log: Log) -> Evidence:
    buckets = log.query % 50
    edges = [log.edges(buckets == bucket) for bucket in range(50)]
    sums = [[values[buckets == b].sum(axis=0) for b in range(50)] for values in (log.shown, log.clicks)]
    shown, clicks = (np.array(values)[:, :, None] for values in sums)
    c, n = (np.array([edge[part] for edge in edges]) for part in (0, 1))
    return Evidence(shown, clicks, c, n, np.ones_like(c), shown[:, :, 0], clicks[:, :, 0], log.cells())


@pytest.mark.parametrize(
    ("traffic", "pages", "seeds", "allowed"),
    [
        (FOUR, 13_000, 30, 0.06),
        (FOUR, 170_000, 3, 0.02),
        (FOUR, 1_550_000, 3, 0.007),
        (LOPSIDED, 11_500, 30, 0.12),
        (LOPSIDED, 150_000, 3, 0.035),
        (LOPSIDED, 1_400_000, 3, 0.012),
    ],
)
def test_all_pairs_finds_the_curve(traffic: list[float], pages: int, seeds: int, allowed: float) -> None:
    """At about 9 k, 120 k and 1.1 M clicks, three logs at a time; the smallest vary, so more of them are drawn."""
    logs = [draw_log(seed, pages, traffic) for seed in range(1, seeds + 1)]
    errors = [error_of(all_pairs(evidence_of(log), FLAT).propensity[:, 0]) for log in logs]
    naive = [error_of(log.clicks.sum(axis=0) / log.shown.sum(axis=0)) for log in logs]
    assert np.max(np.mean(np.reshape(errors, (-1, 3)), axis=1)) <= allowed
    assert np.mean(naive) > 3 * allowed


@pytest.mark.parametrize(("pages", "allowed"), [(13_000, 1.1), (170_000, 1.05)])
def test_a_curve_that_is_no_power_of_the_position_is_left_as_the_log_has_it(pages: int, allowed: float) -> None:
    """Two in five stop reading after the fifth result: the pull to a power must give way."""
    folded = TRUE * np.where(np.arange(10) < 5, 1.0, 0.6)
    logs = [draw_log(seed, pages, FOUR, looks=folded) for seed in range(1, 13)]
    pulled = [error_of(all_pairs(evidence_of(log), FLAT).propensity[:, 0], folded) for log in logs]
    free = [error_of(fit_pairs(*log.edges(), FLAT), folded) for log in logs]
    assert np.mean(pulled) <= allowed * np.mean(free)


def test_em_finds_the_curve() -> None:
    errors = []
    for seed in (1, 2, 3):
        cells = draw_log(seed, 170_000, FOUR).cells()
        fit = fit_counts(cells.pair, cells.position, cells.shown, cells.clicks, FLAT)
        errors.append(error_of(fit.examination))
    assert np.mean(errors) <= 0.03


def test_accelerated_em_reaches_the_likelihood_of_plain_session_level_em() -> None:
    cells = draw_log(5, 3_000, FOUR, queries=10, documents=12).cells()
    fit = fit_counts(cells.pair, cells.position, cells.shown, cells.clicks, TRUE)
    # One row per impression, as sessions are logged; thousands of rounds of the textbook updates.
    rows = np.repeat(np.arange(cells.pair.size), cells.shown.astype(int))
    clicked = np.concatenate([np.arange(n) < c for n, c in zip(cells.shown, cells.clicks, strict=True)])
    pair, place = cells.pair[rows], cells.position[rows]
    theta, gamma = np.full(10, 0.5), np.full(cells.pairs, 0.5)
    shown_at, shown_pair = np.bincount(place), np.bincount(pair)
    for _ in range(4_000):
        t, g = theta[place], gamma[pair]
        missed = 1 - t * g
        looked = np.where(clicked, 1.0, t * (1 - g) / missed)
        liked = np.where(clicked, 1.0, g * (1 - t) / missed)
        theta, gamma = np.bincount(place, looked) / shown_at, np.bincount(pair, liked) / shown_pair
    plain = log_likelihood(theta[place] * gamma[pair], clicked.astype(float), 1.0 - clicked)
    assert fit.log_likelihood == pytest.approx(plain, rel=1e-6)
    assert fit.log_likelihood >= plain - 1e-6 * abs(plain)


def test_trust_is_told_apart_from_relevance_where_the_log_is_large() -> None:
    random = np.random.default_rng(3)
    pairs = 300
    relevance = random.choice([0.05, 0.3, 0.8], pairs)
    theta, trust = TRUE**0.7, 0.3 / np.arange(1, 11)
    shown = np.full((pairs, 10), 4_000.0)
    chance = theta * (relevance[:, None] + trust * (1 - relevance[:, None]))
    log = Log(shown, random.binomial(4_000, chance).astype(float), np.arange(pairs))
    slope, offset = theta * (1 - trust), theta * trust
    found = estimator_named("trust_bias").fit(evidence_of(log), TRUE)
    assert found.propensity[:, 0] == pytest.approx(slope / slope[0], rel=0.05)
    assert fit_trust(log.cells(), TRUE)[1][0] == pytest.approx(0.3, abs=0.1)
    assert found.offset[0] > found.offset[-1] >= 0
    assert offset[0] == pytest.approx(found.offset[0], abs=0.1)


def test_rates_are_ratios_of_click_rates() -> None:
    evidence = evidence_of(draw_log(1, 20_000, FOUR))
    rate = evidence.clicks.sum(axis=(0, 2)) / evidence.shown.sum(axis=(0, 2))
    for name in ("coec", "randomized"):
        assert estimator_named(name).fit(evidence, TRUE).propensity[:, 0] == pytest.approx(rate / rate[0])
    assert estimator_named("none").fit(evidence, TRUE).propensity == pytest.approx(np.ones((10, 1)))


def test_an_unknown_estimator_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'all_pairs'"):
        estimator_named("allpairs")


def test_every_estimator_names_its_source() -> None:
    assert all(found.source for found in ESTIMATORS.values())
