"""Click models as published: by hand, on pages drawn from them, and against plain implementations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from pipelines.labels.history import Read
from pipelines.labels.propensity.estimate import fit_curves
from pipelines.labels.propensity.estimators.dcm import estimate_continuation
from pipelines.labels.propensity.estimators.em import fit_counts
from pipelines.labels.propensity.estimators.first_click import estimate_examination, estimate_first_click_rates
from pipelines.labels.propensity.estimators.ubm import fit_browsing
from pipelines.labels.propensity.evidence import Floats
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.labels.propensity.settings import PropensitySettings
from tests.helpers.click_pages import PAIRS, ClickPages, Model, draw_pages

MILLION = 1_000_000
FLAT = np.ones(10)
# Six sessions on one page of four results: a, then a and c, none, b, then b and d, a.
SIX = ClickPages(
    np.tile(np.arange(4), (6, 1)),
    np.array([[1, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1], [1, 0, 0, 0]], dtype=np.bool_),
)


def rate_pairs(estimator: str, pages: ClickPages) -> Floats:
    """Clicks per examination of each pair, as labels have them."""
    entry = ESTIMATORS[estimator]
    evidence = pages.evidence(entry.history, entry.outcome)
    curve, cells = entry.fit(evidence, np.ones(pages.positions)), evidence.cells
    examined = np.bincount(cells.pair, cells.shown * curve.propensity[cells.position, cells.history], PAIRS)
    clicks = np.bincount(cells.pair, cells.clicks, PAIRS)
    return np.asarray(np.divide(clicks, examined, out=np.full(PAIRS, np.nan), where=examined > 0))


def relative_error(estimate: Floats, true: Floats) -> float:
    return float(np.nanmean(np.abs(estimate / true - 1)))


def draw_uniform(low: float, high: float, seed: int) -> Floats:
    return np.random.default_rng(seed).uniform(low, high, PAIRS)


def test_sdbn_by_hand() -> None:
    """Examined, up to the last click: a in 5 sessions, b in 3, c in 2, d in 1; none in the session without a click.

    The last clicks are a, c, none, b, d, a.
    """
    attractiveness, relevance = rate_pairs("sdbn", SIX)[:4], rate_pairs("sdbn_satisfaction", SIX)[:4]
    assert attractiveness.tolist() == [3 / 5, 2 / 3, 1 / 2, 1 / 1]
    assert relevance.tolist() == [2 / 5, 1 / 3, 1 / 2, 1 / 1]
    assert relevance / attractiveness == pytest.approx([2 / 3, 1 / 2, 1.0, 1.0])  # satisfaction: last clicks / clicks


def test_dcm_by_hand() -> None:
    """The session without a click was read to the end, so each result is examined once more than in sdbn."""
    assert rate_pairs("dcm", SIX)[:4].tolist() == [3 / 6, 2 / 4, 1 / 3, 1 / 2]
    # Of three clicks at position 1 two are the last, of two at position 2 one, and all below.
    assert estimate_continuation(SIX.evidence("read")) == pytest.approx([1 / 3, 1 / 2, 0.0, 0.0])


@pytest.mark.parametrize(("estimator", "examined"), [("sdbn", [0, 1, 1, 0]), ("dcm", [1, 1, 1, 0])])
@pytest.mark.parametrize("contexts", [["all"], ["phone", "desktop"]])
def test_the_curve_of_a_published_model_is_used_as_it_is(
    estimator: str, examined: list[float], contexts: list[str]
) -> None:
    cells = SIX.cells("read")
    counts = {"shown": cells.shown, "clicks": cells.clicks}
    table = pd.DataFrame(
        {"bucket": 0, "pair": cells.pair, "position": cells.position + 1, "other": cells.history} | counts
    )
    rows = [table.assign(statistic=name, context=context) for name in ("cell", "place") for context in contexts]
    records = fit_curves(pd.concat(rows).assign(weight=1.0), PropensitySettings(estimator=estimator))
    uses = records[(records["record"] == "use") & records["context"].isin(contexts)]
    expected = uses["history"].map(dict(enumerate(map(float, examined))))
    assert len(uses) == len(contexts) * 4 * len(Read)
    assert uses["propensity"].tolist() == expected.tolist()
    published = records[records["record"] == "curve"]["propensity"]
    assert published.between(0, 1.5, inclusive="right").all()


def test_sdbn_recovers_attractiveness_and_satisfaction() -> None:
    """Where most pages end with a satisfied click, so that little is examined below the last one."""
    attraction, satisfaction = draw_uniform(0.4, 0.8, seed=1), draw_uniform(0.5, 0.9, seed=2)
    pages = draw_pages("sdbn", attraction, satisfaction, pages=MILLION)
    attractiveness, relevance = rate_pairs("sdbn", pages), rate_pairs("sdbn_satisfaction", pages)
    assert relative_error(attractiveness, attraction) < 0.03
    assert relative_error(relevance / attractiveness, satisfaction) < 0.03


def test_dcm_recovers_attractiveness_and_continuation() -> None:
    """λ down to position 6: further down, too few results follow for those who go on to click again."""
    attraction, continuation = draw_uniform(0.4, 0.8, seed=1), np.linspace(0.6, 0.3, 10)
    pages = draw_pages("dcm", attraction, continuation, pages=MILLION)
    assert relative_error(rate_pairs("dcm", pages), attraction) < 0.03
    assert relative_error(estimate_continuation(pages.evidence("read"))[:6], continuation[:6]) < 0.03


def build_browsing(positions: int) -> Floats:
    apart = np.abs(np.arange(positions)[:, None] + 1 - np.arange(positions + 1)[None, :])
    return np.asarray(0.95 * np.maximum(apart, 1) ** -0.5)


def test_ubm_recovers_examination_and_attractiveness() -> None:
    attraction, examination = draw_uniform(0.15, 0.6, seed=1), build_browsing(10)
    pages = draw_pages("ubm", attraction, examination, pages=MILLION)
    fit = fit_browsing(pages.cells("last_click"), FLAT)
    frequent = pages.evidence("last_click").shown[0] > 1_000
    assert relative_error((fit.examination / fit.examination[0, 0])[frequent], (examination / 0.95)[frequent]) < 0.03
    assert relative_error(fit.attraction * fit.examination[0, 0], attraction * 0.95) < 0.03


def test_em_recovers_examination_and_attractiveness() -> None:
    attraction, examination = draw_uniform(0.15, 0.6, seed=1), np.arange(1.0, 11.0) ** -0.7
    cells = draw_pages("pbm", attraction, examination, pages=MILLION).cells(None)
    fit = fit_counts(cells.pair, cells.position, cells.shown, cells.clicks, FLAT)
    assert relative_error(fit.examination / fit.examination[0], examination) < 0.03
    assert relative_error(fit.attraction * fit.examination[0], attraction) < 0.03


def test_em_finds_a_curve_that_rises() -> None:
    """The first position is not the most examined, though the initial value says so."""
    attraction, examination = draw_uniform(0.15, 0.6, seed=1), np.linspace(0.5, 1.0, 10)
    cells = draw_pages("pbm", attraction, examination, pages=100_000).cells(None)
    fit = fit_counts(cells.pair, cells.position, cells.shown, cells.clicks, 1 / np.arange(1.0, 11.0))
    assert relative_error(fit.examination / fit.examination[0], examination / 0.5) < 0.03


@pytest.mark.parametrize("model", ["dcm", "sdbn"])
def test_first_clicks_are_unbiased_where_the_published_form_is_not(model: Model) -> None:
    """Five results of which few attract: most pages end before a second click, whether or not reading went on."""
    attraction = draw_uniform(0.1, 0.3, seed=1)
    parameter = np.full(5, 0.6) if model == "dcm" else np.full(PAIRS, 0.4)
    pages = draw_pages(model, attraction, parameter, pages=MILLION, positions=5)
    cells = pages.cells("last_click")
    rates = estimate_first_click_rates(cells)
    next_after_click = np.diagonal(estimate_examination(cells, rates, 5))[1:]
    assert relative_error(rates, attraction) < 0.03
    assert relative_error(rate_pairs("first_click", pages), attraction) < 0.03
    assert relative_error(next_after_click, np.full(4, 0.6)) < 0.03
    assert np.mean(rate_pairs(model, pages) / attraction) > (1.08 if model == "dcm" else 2.0)


def test_a_log_without_clicks_leaves_the_curve_as_assumed() -> None:
    cells = SIX.cells("last_click")
    assumed = np.array([1.0, 0.5, 0.3, 0.2])
    fit = fit_counts(cells.pair, cells.position, cells.shown, np.zeros_like(cells.clicks), assumed)
    assert fit.examination.tolist() == assumed.tolist()
    assert fit.attraction.tolist() == [0.0] * 4


# --- Plain implementations: page by page, and textbook EM ---

Chance = Callable[[int, int, int, float], float]  # of a click: position, pair, last click, P(examined)


def measure_held_out(pages: ClickPages, chance: Chance, leave: Callable[[int, int], float]) -> tuple[float, float]:
    """Log likelihood and perplexity of pages, result by result; `leave` is P(stops after a click)."""
    logs = np.zeros(pages.positions)
    for pairs, clicks in zip(pages.pairs, pages.clicks, strict=True):
        examined, last = 1.0, 0
        for k, (pair, click) in enumerate(zip(pairs, clicks, strict=True)):
            p = min(max(chance(k, pair, last, examined), 1e-6), 1 - 1e-6)
            logs[k] += np.log(p if click else 1 - p)
            examined = 1 - leave(k, pair) if click else (examined - p) / (1 - p)
            last = k + 1 if click else last
    return float(logs.sum()), float(np.mean(np.exp(-logs / len(pages.pairs))))


def assert_equal_fit(ours: tuple[float, float], plain: tuple[float, float]) -> None:
    assert ours == pytest.approx(plain, rel=0.005)


def count_sessions(pages: ClickPages, *, abandoned_read: bool) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Examinations, clicks and last clicks by pair, clicks and last clicks by position, session by session."""
    by_pair, by_position = np.zeros((3, PAIRS)), np.zeros((2, pages.positions))
    for pairs, clicks in zip(pages.pairs.tolist(), pages.clicks.tolist(), strict=True):
        places = [k for k, click in enumerate(clicks) if click]
        end = places[-1] if places else len(pairs) - 1 if abandoned_read else -1
        for k in range(end + 1):
            by_pair[0, pairs[k]] += 1
            by_pair[1, pairs[k]] += clicks[k]
            by_position[0, k] += clicks[k]
        if places:
            by_pair[2, pairs[end]] += 1
            by_position[1, end] += 1
    return (*by_pair, *by_position)


def test_sdbn_predicts_held_out_pages_as_a_plain_implementation_does() -> None:
    attraction, satisfaction = draw_uniform(0.15, 0.6, seed=1), draw_uniform(0.3, 0.8, seed=2)
    pages = draw_pages("sdbn", attraction, satisfaction, pages=30_000)
    train, rest = pages.where(slice(0, 28_000)), pages.where(slice(28_000, None))
    examined, clicks, last, _, _ = count_sessions(train, abandoned_read=False)
    a = rate_pairs("sdbn", train)
    s = rate_pairs("sdbn_satisfaction", train) / a
    ours = measure_held_out(rest, lambda k, pair, last, e: e * a[pair], lambda k, pair: s[pair])
    plain_a, plain_s = clicks / examined, last / clicks
    plain = measure_held_out(rest, lambda k, pair, last, e: e * plain_a[pair], lambda k, pair: plain_s[pair])
    assert_equal_fit(ours, plain)
    assert a == pytest.approx(plain_a, rel=1e-12)


def test_dcm_predicts_held_out_pages_as_a_plain_implementation_does() -> None:
    attraction, continuation = draw_uniform(0.15, 0.6, seed=1), np.linspace(0.8, 0.4, 10)
    pages = draw_pages("dcm", attraction, continuation, pages=30_000)
    train, rest = pages.where(slice(0, 28_000)), pages.where(slice(28_000, None))
    examined, clicks, _, by_position, last_by_position = count_sessions(train, abandoned_read=True)
    a, go_on = rate_pairs("dcm", train), estimate_continuation(train.evidence("read"))
    ours = measure_held_out(rest, lambda k, pair, last, e: e * a[pair], lambda k, pair: 1 - go_on[k])
    plain_a, plain_stop = clicks / examined, last_by_position / by_position
    plain = measure_held_out(rest, lambda k, pair, last, e: e * plain_a[pair], lambda k, pair: plain_stop[k])
    assert_equal_fit(ours, plain)
    assert a == pytest.approx(plain_a, rel=1e-12)


def fit_textbook(pages: ClickPages, places: int, rounds: int, *, by_last_click: bool) -> tuple[Floats, Floats, float]:
    """Textbook EM of the position-based or user browsing model: one row per result, both factors updated together."""
    place = np.tile(np.arange(pages.positions), len(pages.pairs))
    if by_last_click:
        place = place * (pages.positions + 1) + pages.states("last_click").ravel()
    pair, click = pages.pairs.ravel(), pages.clicks.ravel()
    theta, alpha = np.full(places, 0.5), np.full(PAIRS, 0.5)
    at_place, of_pair = np.maximum(np.bincount(place, minlength=places), 1), np.bincount(pair, minlength=PAIRS)
    for _ in range(rounds):
        t, a = theta[place], alpha[pair]
        skipped = 1 - t * a
        theta = np.bincount(place, np.where(click, 1.0, t * (1 - a) / skipped), places) / at_place
        alpha = np.bincount(pair, np.where(click, 1.0, a * (1 - t) / skipped), PAIRS) / of_pair
    chance = theta[place] * alpha[pair]
    return theta, alpha, float(np.sum(np.log(np.where(click, chance, 1 - chance))))


def assert_reaches(ours: float, textbook: float) -> None:
    assert ours >= textbook - 1e-6 * abs(textbook)
    assert ours == pytest.approx(textbook, rel=0.001)


def never(position: int, pair: int) -> float:
    return 0.0


def test_ubm_reaches_the_likelihood_of_textbook_em() -> None:
    pages = draw_pages("ubm", draw_uniform(0.15, 0.6, seed=1), build_browsing(10), pages=9_000)
    train, rest = pages.where(slice(0, 7_000)), pages.where(slice(7_000, None))
    fit = fit_browsing(train.cells("last_click"), FLAT)
    theta, alpha, value = fit_textbook(train, 110, 300, by_last_click=True)
    assert_reaches(fit.log_likelihood, value)
    gamma = theta.reshape(10, 11)
    ours = measure_held_out(rest, lambda k, pair, last, e: fit.examination[k, last] * fit.attraction[pair], never)
    assert_equal_fit(ours, measure_held_out(rest, lambda k, pair, last, e: gamma[k, last] * alpha[pair], never))


def test_em_reaches_the_likelihood_of_textbook_em() -> None:
    pages = draw_pages("pbm", draw_uniform(0.15, 0.6, seed=1), np.arange(1.0, 11.0) ** -0.7, pages=9_000)
    train, rest = pages.where(slice(0, 7_000)), pages.where(slice(7_000, None))
    cells = train.cells(None)
    fit = fit_counts(cells.pair, cells.position, cells.shown, cells.clicks, FLAT)
    theta, alpha, value = fit_textbook(train, 10, 300, by_last_click=False)
    assert_reaches(fit.log_likelihood, value)
    ours = measure_held_out(rest, lambda k, pair, last, e: fit.examination[k] * fit.attraction[pair], never)
    assert_equal_fit(ours, measure_held_out(rest, lambda k, pair, last, e: theta[k] * alpha[pair], never))
