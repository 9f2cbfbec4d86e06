"""Estimators find the curve that a log was drawn with."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from pipelines.labels.propensity.estimators.all_pairs import all_pairs
from pipelines.labels.propensity.estimators.em import fit_counts, log_likelihood
from pipelines.labels.propensity.estimators.trust_bias import fit_trust
from pipelines.labels.propensity.evidence import Floats, gather_evidence
from pipelines.labels.propensity.intervals import CurveEstimate, estimate_curve
from pipelines.labels.propensity.measure import score_rates
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.labels.propensity.settings import PropensitySettings
from schemas.errors import ConfigurationError
from tests.helpers.click_logs import ClickLog, draw_log

TRUE = 1 / np.arange(1.0, 11.0)
FLAT = np.ones(10)
FOUR = [0.25] * 4
LOPSIDED = [0.85, 0.10, 0.05]


def mean_error(curve: Floats, true: Floats = TRUE) -> float:
    return float(np.mean(np.abs(curve / curve[0] / true - 1)))


def estimate(name: str, log: ClickLog) -> CurveEstimate:
    return estimate_curve(ESTIMATORS[name], log.evidence(), TRUE, PropensitySettings())


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
    errors = [mean_error(estimate("all_pairs", log).positions) for log in logs]
    naive = [mean_error(log.clicks.sum(axis=0) / log.shown.sum(axis=0)) for log in logs]
    assert np.max(np.mean(np.reshape(errors, (-1, 3)), axis=1)) <= allowed
    assert np.mean(naive) > 3 * allowed


@pytest.mark.parametrize(("pages", "allowed"), [(13_000, 1.1), (170_000, 1.05)])
def test_a_curve_that_is_no_power_of_the_position_is_hardly_shrunk(pages: int, allowed: float) -> None:
    """Two in five users stop after the fifth result: shrinkage to a power must not add error."""
    folded = TRUE * np.where(np.arange(10) < 5, 1.0, 0.6)
    logs = [draw_log(seed, pages, FOUR, examination=folded) for seed in range(1, 13)]
    shrunk = [mean_error(estimate("all_pairs", log).positions, folded) for log in logs]
    free = [mean_error(all_pairs(log.evidence(), TRUE).propensity[:, 0], folded) for log in logs]
    assert np.mean(shrunk) <= allowed * np.mean(free)


def test_em_finds_the_curve() -> None:
    errors = []
    for seed in (1, 2, 3):
        cells = draw_log(seed, 170_000, FOUR).cells()
        fit = fit_counts(cells.pair, cells.position, cells.shown, cells.clicks, FLAT)
        errors.append(mean_error(fit.examination))
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
        examined = np.where(clicked, 1.0, t * (1 - g) / missed)
        liked = np.where(clicked, 1.0, g * (1 - t) / missed)
        theta, gamma = np.bincount(place, examined) / shown_at, np.bincount(pair, liked) / shown_pair
    plain = log_likelihood(theta[place] * gamma[pair], clicked.astype(float), 1.0 - clicked)
    assert fit.log_likelihood == pytest.approx(plain, rel=1e-6)
    assert fit.log_likelihood >= plain - 1e-6 * abs(plain)


def test_trust_is_separated_from_relevance_on_a_large_log() -> None:
    random = np.random.default_rng(3)
    pairs = 300
    relevance = random.choice([0.05, 0.3, 0.8], pairs)
    theta, trust = TRUE**0.7, 0.3 / np.arange(1, 11)
    shown = np.full((pairs, 10), 4_000.0)
    chance = theta * (relevance[:, None] + trust * (1 - relevance[:, None]))
    log = ClickLog(shown, random.binomial(4_000, chance).astype(float), np.arange(pairs))
    slope, offset = theta * (1 - trust), theta * trust
    curve = ESTIMATORS["trust_bias"].fit(log.evidence(), TRUE)
    assert curve.propensity[:, 0] == pytest.approx(slope / slope[0], rel=0.05)
    assert fit_trust(log.cells(), TRUE)[1][0] == pytest.approx(0.3, abs=0.1)
    assert curve.offset[0] > curve.offset[-1] >= 0
    assert offset[0] == pytest.approx(curve.offset[0], abs=0.1)


def test_rates_are_ratios_of_click_rates() -> None:
    evidence = draw_log(1, 20_000, FOUR).evidence()
    rate = evidence.clicks.sum(axis=(0, 2)) / evidence.shown.sum(axis=(0, 2))
    for name in ("coec", "randomized"):
        fitted = ESTIMATORS[name]
        curve = fitted.fit(evidence, TRUE)
        assert curve.propensity[:, 0] == pytest.approx(rate / rate[0])
        assert fitted.measure is not None
        assert fitted.measure(evidence, curve).log_theta == pytest.approx(np.log(rate / rate[0])[1:])
    assert ESTIMATORS["none"].fit(evidence, TRUE).propensity == pytest.approx(np.ones((10, 1)))


def test_randomized_intervals_are_binomial_where_one_bucket_has_all_pages() -> None:
    """400 and 100 clicks of 1,000 impressions each: var(log θ) = 0.6/400 + 0.9/100, twice that for lack of buckets."""
    log = ClickLog(np.array([[1000.0, 1000.0]]), np.array([[400.0, 100.0]]), np.zeros(1, dtype=np.int64))
    variance = score_rates(log.evidence().shuffled_shown, log.evidence().shuffled_clicks).measure().variance
    assert variance == pytest.approx([2 * (0.6 / 400 + 0.9 / 100)], rel=0.1)


def test_the_published_em_is_corrected_where_thin_counts_bias_the_likelihood() -> None:
    """At 9,000 clicks the maximum of the likelihood is off by half; the published curve is not, and says how far."""
    raw, published, inside = [], [], []
    for seed in range(1, 7):
        log = draw_log(seed, 11_500, LOPSIDED)
        curve = estimate("em", log)
        low, high = curve.bounds()
        raw.append(mean_error(ESTIMATORS["em"].fit(log.evidence(), TRUE).propensity[:, 0]))
        published.append(mean_error(curve.positions))
        inside.append(((low <= TRUE) & (high >= TRUE))[1:])
    assert np.mean(raw) > 0.4
    assert np.mean(published) < 0.3 * np.mean(raw)
    assert np.mean(inside) > 0.93


def test_an_unknown_estimator_is_answered_with_the_names_that_exist() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'all_pairs'"):
        ESTIMATORS.require("allpairs")


def test_every_estimator_names_its_source() -> None:
    assert all(estimator.fit.__doc__ for estimator in ESTIMATORS.values())


def test_settings_refuse_an_unknown_estimator_and_accept_every_registered_one() -> None:
    with pytest.raises(ValidationError, match="unknown estimator 'allpairs': did you mean 'all_pairs'"):
        PropensitySettings(estimator="allpairs")
    assert [PropensitySettings(estimator=name).estimator for name in ESTIMATORS] == list(ESTIMATORS)


def test_the_default_settings_import_no_estimator() -> None:
    code = "import sys, pipelines.labels.settings as s; s.LabelSettings(); print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_cells_do_not_depend_on_the_order_of_rows() -> None:
    rows = [("cell", c, 0, pair, position, 0, 10.0, 3.0, None) for c in "ab" for pair in (7, 5) for position in (1, 2)]
    names = ["statistic", "context", "bucket", "pair", "position", "other", "shown", "clicks", "weight"]
    table = pd.DataFrame(rows, columns=names)
    table["shown"] += np.arange(len(table))
    first, second = (gather_evidence(part, positions=2, buckets=1).cells for part in (table, table.iloc[::-1]))
    assert first.shown.tolist() == second.shown.tolist()
    assert first.pair.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
