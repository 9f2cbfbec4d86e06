"""A curve comes with confidence intervals and with diagnostics."""

import numpy as np
import pandas as pd
import pytest

from pipelines.labels.propensity.diagnostics import (
    diagnose_agreement,
    diagnose_graph,
    diagnose_moves,
    diagnose_trend,
    format_positions,
)
from pipelines.labels.propensity.edges import find_connected_positions
from pipelines.labels.propensity.estimate import diagnose_curve, fit_curves
from pipelines.labels.propensity.evidence import Floats, PositionEvidence
from pipelines.labels.propensity.held_out import diagnose_fit
from pipelines.labels.propensity.information import Measurement, combine_information
from pipelines.labels.propensity.intervals import CurveEstimate, estimate_curve, shrink_curves
from pipelines.labels.propensity.power import pull_to_power
from pipelines.labels.propensity.registry import ESTIMATORS, build_flat_curve
from pipelines.labels.propensity.settings import PropensitySettings
from tests.helpers.click_logs import ATTRACTION, ClickLog, draw_log
from tests.unit.labels.test_propensity import FOUR, TRUE

SETTINGS = PropensitySettings()


def estimate(evidence: PositionEvidence, name: str = "all_pairs") -> CurveEstimate:
    return estimate_curve(ESTIMATORS[name], evidence, TRUE, SETTINGS)


def build_estimate(positions: Floats, error: float = 0.0, information: float = 1e6) -> CurveEstimate:
    size = positions.size - 1
    return CurveEstimate(
        curve=build_flat_curve(positions),
        positions=positions,
        error=np.append(0.0, np.full(size, error)),
        basis=("measured",) * positions.size,
        eta=1.0,
        eta_deviation=error,
        measurement=Measurement(np.log(positions[1:]), information * np.eye(size)),
    )


def build_broken_evidence(first: int) -> PositionEvidence:
    """A log where no document moves between the first positions and the others."""
    log = draw_log(1, 50_000, [0.5, 0.5])
    upper = log.shown.copy()
    upper[::2, first:] = 0
    upper[1::2, :first] = 0
    return ClickLog(upper, np.minimum(log.clicks, upper), log.query).evidence()


def test_positions_that_no_document_connects_are_named() -> None:
    evidence = build_broken_evidence(6)
    diagnostic = diagnose_graph(evidence, estimate(evidence), SETTINGS)
    assert diagnostic.warning
    assert diagnostic.sentence.startswith(
        "Positions 7–10 are not connected to 1–6: no document was shown both there and at another position; "
        "a curve pulled to (1/k)^"
    )
    assert diagnostic.sentence.endswith("is used for 7–10.")
    assert find_connected_positions(evidence, 10.0).tolist() == [True] * 6 + [False] * 4


@pytest.mark.parametrize("name", ["all_pairs", "em"])
def test_unconnected_positions_follow_the_power_of_the_others_with_wide_intervals(name: str) -> None:
    curve = estimate(build_broken_evidence(6), name)
    assert np.mean(np.abs(curve.positions / TRUE - 1)) < 0.15
    assert curve.basis == ("measured",) * 6 + ("pulled",) * 4
    assert curve.error[6] > max(0.15, 1.3 * curve.error[5])


def test_em_claims_nothing_about_positions_that_are_not_connected() -> None:
    """The likelihood is the same for any level of the two lower positions, so the start of the fit decides it."""
    shown = np.repeat([[50.0, 50.0, 0.0, 0.0], [0.0, 0.0, 50.0, 50.0]], 100, axis=0)
    clicks = shown * [0.2, 0.1, 0.08, 0.06]
    evidence = ClickLog(shown, clicks, np.arange(200)).evidence()
    raw, curves = [], []
    for start in (np.array([1.0, 0.5, 0.3, 0.25]), np.array([1.0, 0.7, 0.6, 0.5])):
        raw.append(ESTIMATORS["em"].fit(evidence, start).propensity[:, 0])
        curves.append(estimate_curve(ESTIMATORS["em"], evidence, start, SETTINGS))
    assert np.all(np.abs(np.log(raw[0] / raw[1])[2:]) > 0.3)
    assert curves[0].positions == pytest.approx(curves[1].positions, rel=0.01)
    assert curves[0].positions[:2] == pytest.approx([1.0, 0.5], rel=0.01)
    assert curves[0].positions[3] / curves[0].positions[2] == pytest.approx(0.75, rel=0.01)
    assert np.all(curves[0].error[2:] > 3 * curves[0].error[1])


def test_a_log_without_any_movement_says_that_bias_cannot_be_estimated() -> None:
    evidence = draw_log(1, 20_000, [1.0]).evidence()
    curve = estimate(evidence)
    diagnostic = diagnose_graph(evidence, curve, SETTINGS)
    assert diagnostic.warning
    assert diagnostic.sentence.startswith(
        "Position bias cannot be estimated from this log: no document was shown both at position 1 and at another "
        "position; an assumed curve (1/k)^1 is used for 2–10."
    )
    assert curve.positions == pytest.approx(TRUE)
    assert curve.eta_deviation == pytest.approx(0.5)
    low, high = curve.bounds()
    assert low[9] < 0.04 and high[9] > 0.25


def test_a_ranker_that_depends_on_the_user_is_reported_as_personalised() -> None:
    assert diagnose_moves(100.0, 30.0, 0.05).warning
    assert not diagnose_moves(100.0, 1.0, 0.05).warning


def test_the_trend_of_relevance_shows_a_wrong_curve() -> None:
    evidence = draw_log(2, 170_000, FOUR).evidence()
    right, wrong = diagnose_trend(evidence, TRUE)[0], diagnose_trend(evidence, np.ones(10))[0]
    assert not right.warning
    assert wrong.warning
    assert wrong.value == pytest.approx(-1.0, abs=0.05)


def test_a_position_that_a_curve_gets_wrong_is_named() -> None:
    off = TRUE * np.where(np.arange(10) == 6, 2.0, 1.0)
    diagnostic = diagnose_trend(draw_log(2, 170_000, FOUR).evidence(), off)[0]
    assert diagnostic.warning
    assert diagnostic.sentence.endswith("; the curve does not fit at 7.")


def test_held_out_clicks_are_predicted_better_by_the_right_curve() -> None:
    cells = draw_log(2, 170_000, FOUR).cells()
    right, wrong = (diagnose_fit(cells, build_flat_curve(curve))[0] for curve in (TRUE, TRUE[::-1]))
    assert not right.warning
    assert wrong.warning
    assert 1 < right.value < wrong.value < 2
    assert "the curve does not help" in wrong.sentence


@pytest.mark.parametrize(("level", "power"), [(0.06, 1.0), (0.65, 1.0), (1.6, 0.25)])
def test_diagnostics_are_silent_on_the_true_curve_and_fire_on_a_wrong_one(level: float, power: float) -> None:
    """At click rates of about 0.4, 4 and 19 %; python -m benchmarks.propensity draws 100 larger logs of each."""
    true = TRUE**power
    fires = {"true": 0, "own": 0, "wrong": 0}
    for seed in range(12):
        log = draw_log(seed, 60_000, FOUR, queries=100, documents=12, examination=true, attraction=ATTRACTION * level)
        evidence = log.evidence()
        curves = {"true": build_estimate(true), "own": estimate(evidence), "wrong": build_estimate(true**0.5)}
        for name, curve in curves.items():
            diagnostics = diagnose_curve(ESTIMATORS["all_pairs"], evidence, curve, TRUE, SETTINGS)
            fires[name] += any(diagnostic.warning for diagnostic in diagnostics)
    assert fires["true"] <= 1
    assert fires["own"] <= 1
    assert fires["wrong"] >= 11


def test_estimators_that_disagree_beyond_their_errors_are_reported() -> None:
    exact, near, far = (build_estimate(TRUE**power, 0.01) for power in (1.0, 1.02, 1.2))
    names = ("all_pairs", "em")
    assert not diagnose_agreement(names, exact, near).warning
    diagnostic = diagnose_agreement(names, exact, far)
    assert diagnostic.warning
    assert diagnostic.value == pytest.approx(np.mean(1 - TRUE[1:] ** 0.2))
    assert diagnostic.sentence == (
        f"The curves of all_pairs and em differ by {diagnostic.value:.1%} on average, beyond their errors at 2–10: "
        "the model does not fit this log."
    )
    vague = diagnose_agreement(names, exact, build_estimate(TRUE**1.2, 0.5))
    assert not vague.warning
    assert vague.sentence.endswith("within their errors.")


def test_positions_are_formatted_as_ranges() -> None:
    assert format_positions(np.array([0, 1, 2, 6])) == "1–3, 7"


@pytest.mark.parametrize("fold", [1.0, 0.6])
def test_intervals_cover_the_truth_and_are_no_wider_than_those_without_a_prior(fold: float) -> None:
    true = TRUE * np.where(np.arange(10) < 5, 1.0, fold)
    inside, widths = [], []
    for seed in range(30):
        curve = estimate(draw_log(seed, 30_000, FOUR, examination=true).evidence())
        low, high = curve.bounds()
        inside.append(((low <= true) & (high >= true))[1:])
        assert curve.measurement is not None
        widths.append(curve.error[1:] / np.sqrt(curve.measurement.variance))
    assert np.mean(inside) >= 0.93
    assert np.mean(widths) <= 1.0


def test_one_bucket_or_three_change_the_width_of_an_interval_little() -> None:
    """The binomial variance stands in for buckets that are missing."""
    curvature = np.array([[100.0]])
    noise = np.random.default_rng(1).normal(0, 10, (50, 1)) / np.sqrt(50)
    errors = [combine_information(curvature, part)[0, 0] ** -0.5 for part in (noise - noise.mean(), noise[:1] * 0)]
    three = np.array([[0.1], [0.1], [-0.2]])
    errors.append(combine_information(curvature, three)[0, 0] ** -0.5)
    assert errors == pytest.approx([0.1, 0.1, 0.1], rel=0.5)


def test_a_precise_curve_is_not_pulled_and_an_imprecise_one_is_a_power() -> None:
    places = np.arange(2, 11)
    wavy = TRUE[1:] * np.exp(0.3 * np.cos(places))
    precise, imprecise = (
        pull_to_power(Measurement(np.log(wavy), np.eye(9) * information), 1.0) for information in (1e6, 0.1)
    )
    assert np.exp(precise.log_theta) == pytest.approx(wavy, rel=1e-3)
    eta = -imprecise.log_theta / np.log(places)
    assert eta == pytest.approx(np.full(9, eta[0]), rel=1e-4)
    assert imprecise.eta == pytest.approx(eta[0], rel=1e-4)
    assert 0.9 < eta[0] < 1.1
    assert np.all(np.diag(precise.covariance) < 2e-6)


def test_an_imprecise_context_is_shrunk_to_the_pooled_curve() -> None:
    precise = build_estimate(TRUE**1.3, information=1e4)
    imprecise, nothing = (build_estimate(TRUE**0.5, information=information) for information in (0.25, 0.0))
    pooled = build_estimate(TRUE, 0.01)
    near, far, none = shrink_curves([precise, imprecise, nothing], pooled)
    assert np.allclose(near.positions, precise.positions, rtol=0.02)
    assert near.basis == ("measured",) * 10
    assert near.eta == pytest.approx(1.3, abs=0.01)
    assert np.all(np.abs(np.log(far.positions / TRUE)) < 0.5 * np.abs(np.log(imprecise.positions / TRUE)) + 1e-9)
    assert np.allclose(none.positions, TRUE, rtol=1e-3)
    assert none.eta == pytest.approx(1.0, abs=1e-3)
    assert set(none.basis[1:]) == {"pulled"}
    assert np.all(none.error[1:] > far.error[1:]) and np.all(far.error[1:] > near.error[1:])


@pytest.mark.parametrize("name", ["all_pairs", "em"])
def test_contexts_that_differ_in_the_exponent_have_curves_of_their_own(name: str) -> None:
    """20,000 pages by phone with k^-1.4, 2,000 by desktop with k^-.6."""
    truths = {"phone": TRUE**1.4, "desktop": TRUE**0.6}
    parts = []
    for seed, (context, pages) in enumerate((("phone", 20_000), ("desktop", 2_000))):
        rows = draw_log(seed, pages, FOUR, queries=200, examination=truths[context]).statistics()
        parts.append(rows.assign(context=context, pair=rows["pair"] + seed * 10_000))
    records = fit_curves(pd.concat(parts), PropensitySettings(estimator=name))
    for context, true in truths.items():
        curve = records[(records["record"] == "curve") & (records["context"] == context)]
        assert np.mean(np.abs(curve["propensity"] / true - 1)) < 0.12
        assert ((curve["low"] <= true) & (true <= curve["high"])).mean() >= 0.8
    eta = records[records["record"] == "exponent"].set_index("context")["value"]
    assert (eta["phone"], eta["desktop"]) == (pytest.approx(1.4, abs=0.1), pytest.approx(0.6, abs=0.15))
