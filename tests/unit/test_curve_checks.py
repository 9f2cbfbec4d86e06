"""A curve comes with its uncertainty and with a verdict on whether to believe it."""

import numpy as np
import pytest

from pipelines.propensity.diagnostics import (
    judge_agreement,
    judge_fit,
    judge_graph,
    judge_moves,
    judge_trend,
    link_to_first,
    spans,
)
from pipelines.propensity.estimators import estimator_named
from pipelines.propensity.evidence import Evidence
from pipelines.propensity.intervals import Estimate, estimate, shrink
from pipelines.propensity.power import toward_power
from pipelines.propensity.registry import flat
from tests.unit.drawn import Log, draw_log
from tests.unit.test_propensity import TRUE, evidence_of


def broken(first: int) -> Evidence:
    """A log where no document moves between the first positions and the others."""
    log = draw_log(1, 50_000, [0.5, 0.5])
    upper = log.shown.copy()
    upper[::2, first:] = 0
    upper[1::2, :first] = 0
    return evidence_of(Log(upper, np.minimum(log.clicks, upper), log.query))


def test_positions_that_no_document_connects_are_named() -> None:
    verdict = judge_graph(broken(6), 10.0, 1.0)[0]
    assert verdict.warning
    assert verdict.sentence.startswith("positions 7–10 are not connected to 1–6: no document was seen in both")
    assert "assumed curve (1/k)^1" in verdict.sentence
    assert link_to_first(broken(6), 10.0).tolist() == [1.0] * 6 + [0.0] * 4


def test_unconnected_positions_keep_their_shape_and_take_the_assumed_level() -> None:
    found = estimator_named("all_pairs").fit(broken(6), TRUE).propensity[:, 0]
    assert np.mean(np.abs(found / TRUE - 1)) < 0.06
    assert np.isclose(np.exp(np.mean(np.log(found[6:]))), np.exp(np.mean(np.log(TRUE[6:]))), rtol=1e-3)


def test_a_log_without_any_movement_says_that_bias_cannot_be_estimated() -> None:
    log = draw_log(1, 20_000, [1.0])
    verdict = judge_graph(evidence_of(log), 10.0, 1.0)[0]
    assert verdict.warning
    assert "cannot be estimated" in verdict.sentence
    assert "2–10" in verdict.sentence


def test_a_ranker_that_follows_the_user_is_called_personalised() -> None:
    assert judge_moves(100.0, 30.0, 0.05).warning
    assert not judge_moves(100.0, 1.0, 0.05).warning
    assert judge_moves(0.0, 0.0, 0.05).warning


def test_the_trend_of_relevance_shows_a_wrong_curve() -> None:
    evidence = evidence_of(draw_log(2, 170_000, [0.25] * 4))
    right, wrong = judge_trend(evidence, TRUE)[0], judge_trend(evidence, np.ones(10))[0]
    assert not right.warning
    assert wrong.warning
    assert wrong.value < -0.8


def test_held_out_clicks_are_better_foretold_by_the_right_curve() -> None:
    cells = draw_log(2, 170_000, [0.25] * 4).cells()
    right, wrong = judge_fit(cells, TRUE)[0], judge_fit(cells, TRUE[::-1])[0]
    assert not right.warning
    assert wrong.warning
    assert 1 < right.value < wrong.value < 2
    assert "the curve does not help" in wrong.sentence


def test_a_position_that_a_curve_gets_wrong_is_named() -> None:
    off = TRUE * np.where(np.arange(10) == 6, 3.0, 1.0)
    verdict = judge_fit(draw_log(2, 170_000, [0.25] * 4).cells(), off)[0]
    assert "; at 7 alone the click rate does better" in verdict.sentence


def test_estimators_that_disagree_are_told() -> None:
    near, far = (judge_agreement("all_pairs", TRUE, "em", other) for other in (TRUE**1.02, TRUE**1.2))
    assert not near.warning
    assert far.warning
    assert far.value == pytest.approx(np.mean(1 - TRUE[1:] ** 0.2))
    assert far.sentence == f"all_pairs and em differ by {far.value:.1%} on average: the log is thin, or the model " \
        "does not fit it."  # fmt: skip


def test_positions_are_written_as_spans() -> None:
    assert spans(np.array([0, 1, 2, 6])) == "1–3, 7"


def test_jackknife_intervals_cover_the_truth() -> None:
    inside = []
    for seed in range(100):
        evidence = evidence_of(draw_log(seed, 30_000, [0.25] * 4))
        low, high = estimate(estimator_named("all_pairs"), evidence, np.ones(10), jackknife=True).bounds()
        inside.append(((low <= TRUE) & (high >= TRUE))[1:])
    assert 0.92 <= np.mean(inside) <= 0.98


def test_what_is_no_power_of_the_position_stays_as_far_as_it_is_sure() -> None:
    places = np.arange(2, 11)
    wavy = TRUE[1:] * np.exp(0.3 * np.cos(places))
    sure, unsure = toward_power(wavy, places, np.eye(9) * 1e-6), toward_power(wavy, places, np.eye(9) * 10.0)
    assert sure == pytest.approx(wavy, rel=1e-3)
    eta = -np.log(unsure) / np.log(places)
    assert eta == pytest.approx(np.full(9, eta[0]))
    assert eta[0] == pytest.approx(1.0, abs=0.1)
    assert toward_power(wavy[:2], places[:2], np.eye(2)).tolist() == wavy[:2].tolist()


def test_an_unsure_context_is_pulled_to_the_pooled_curve() -> None:
    def one(power: float, error: float) -> Estimate:
        positions = TRUE**power
        return Estimate(flat(positions), positions, np.array([0.0] + [error] * 9), 50)

    sure, unsure, pooled = one(1.3, 0.01), one(0.5, 2.0), one(1.0, 0.01)
    near, far = shrink([sure, unsure], pooled, [np.ones(10), np.ones(10)])
    assert np.allclose(near.positions, sure.positions, rtol=0.02)
    assert np.all(
        np.abs(np.log(far.positions / pooled.positions)) < 0.25 * np.abs(np.log(unsure.positions / TRUE)) + 1e-9
    )
    assert np.allclose(shrink([unsure], pooled, [np.zeros(10)])[0].positions, pooled.positions)
