"""Thin and one-sided logs: a sane curve, wide intervals and true sentences, from counts to records."""

import numpy as np
import pandas as pd
import pytest

from pipelines.labels.propensity.estimate import fit_curves
from pipelines.labels.propensity.evidence import Ints
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.labels.propensity.settings import PropensitySettings
from tests.helpers.click_logs import ClickLog, draw_log

BY_POSITION = [name for name, estimator in ESTIMATORS.items() if estimator.history is None and name != "none"]


def draw_pages(seed: int, orders: list[list[int]], positions: int, *, query: Ints | None = None) -> ClickLog:
    """Pages as lists of document numbers, clicked with probability 0.4/k."""
    random = np.random.default_rng(seed)
    documents = max(max(order) for order in orders) + 1 if query is None else query.size
    shown, clicks = np.zeros((2, documents, positions))
    for order in orders:
        for place, document in enumerate(order):
            shown[document, place] += 1
            clicks[document, place] += random.random() < 0.4 / (place + 1)
    return ClickLog(shown, clicks, np.zeros(documents, dtype=np.int64) if query is None else query)


def draw_one_query() -> ClickLog:
    """One query × 250 pages of ten results, in three orders."""
    random = np.random.default_rng(1)
    orders = [random.permutation(12)[:10].tolist() for _ in range(3)]
    return draw_pages(2, [orders[random.integers(3)] for _ in range(250)], 10)


def draw_deep_searches() -> ClickLog:
    """200 searches × 38 positions; 60 documents stand at position 1 once and elsewhere once."""
    random = np.random.default_rng(3)
    pages = [[page * 38 + place for place in range(38)] for page in range(200)]
    for page in range(60):
        pages[page + 60][random.integers(1, 38)] = pages[page][0]
    return draw_pages(4, pages, 38, query=np.arange(200 * 38) // 38)


def draw_still() -> ClickLog:
    """One system that never moves anything."""
    return draw_log(5, 3_000, [1.0], queries=50)


def draw_below_minimum() -> ClickLog:
    """Each position below the first shares five documents with it, each shown once at both: 2.5 impressions."""
    pages = [[page * 10 + place for place in range(10)] for page in range(90)]
    for page in range(45):
        pages[page + 45][1 + page % 9] = pages[page][0]
    return draw_pages(6, pages, 10, query=np.arange(900) // 10)


SHAPES = {
    "one query": draw_one_query,
    "deep": draw_deep_searches,
    "still": draw_still,
    "below the minimum": draw_below_minimum,
}


def fit(log: ClickLog, name: str = "all_pairs", *, jackknife: bool = True) -> tuple[pd.DataFrame, dict[str, str]]:
    records = fit_curves(log.statistics(), PropensitySettings(estimator=name, jackknife=jackknife))
    curve = records[records["record"] == "curve"].astype({"position": int}).set_index("position")
    diagnostics = records[records["record"] == "diagnostic"]
    return curve, dict(zip(diagnostics["check"], diagnostics["sentence"], strict=True))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", BY_POSITION)
def test_propensities_are_sane_and_intervals_contain_them(shape: str, name: str) -> None:
    curve, _ = fit(SHAPES[shape](), name, jackknife=shape == "one query")
    values = curve["propensity"]
    assert values[1] == curve["low"][1] == curve["high"][1] == 1.0
    assert ((values > 0) & (values <= 1.5)).all()
    below = curve.iloc[1:]
    assert ((below["low"] < below["propensity"]) & (below["propensity"] <= below["high"])).all()
    assert (below["high"] <= 1.5).all()


@pytest.mark.parametrize("shape", ["still", "below the minimum", "deep"])
def test_intervals_are_wide_where_little_is_known(shape: str) -> None:
    curve, _ = fit(SHAPES[shape]())
    assert (np.log(curve["high"] / curve["low"])[3:] > 1.5).all()
    assert not set(curve["basis"][1:]) & {"measured"}


def test_the_announced_curve_is_the_one_in_use() -> None:
    records = fit_curves(draw_still().statistics(), PropensitySettings(assumed_eta=0.7))
    by_record = {name: part.set_index("position")["propensity"] for name, part in records.groupby("record")}
    expected = np.arange(1, 11) ** -0.7
    assert by_record["curve"].to_numpy() == pytest.approx(expected)
    assert by_record["use"].to_numpy() == pytest.approx(expected)
    curve = records[records["record"] == "curve"]
    assert set(curve["basis"][1:]) == set(curve["estimator"][1:]) == {"assumed"}
    exponent = records[records["record"] == "exponent"].iloc[0]
    assert (exponent["value"], exponent["error"]) == pytest.approx((0.7, 0.5))


def test_a_log_that_moves_nothing_says_so() -> None:
    _, sentences = fit(draw_still())
    assert sentences["connected"].startswith(
        "Position bias cannot be estimated from this log: no document was shown both at position 1 and at another "
        "position; an assumed curve (1/k)^1 is used for 2–10."
    )


@pytest.mark.parametrize(("shape", "moves"), [("deep", 60), ("below the minimum", 45)])
def test_documents_below_the_minimum_are_counted_not_denied(shape: str, moves: int) -> None:
    log = SHAPES[shape]()
    curve, sentences = fit(log)
    both = (log.shown[:, :1] > 0) & (log.shown[:, 1:] > 0)
    assert both.sum() == moves
    evidence = log.evidence()
    weight, clicks = (evidence.edge_clicks + evidence.edge_rest).sum(axis=0)[0], evidence.edge_clicks.sum(axis=0)
    best = weight[(clicks + clicks.T)[0] > 0].max()
    sentence = sentences["connected"]
    assert sentence.startswith(
        "Position bias can hardly be estimated from this log: documents were shown both at position 1 and at another "
        f"position {moves} times, with evidence worth {best:.1f} impressions for the best pair of positions, below "
        "minimum_edge (10); "
    )
    for basis in ("pulled", "assumed"):
        assert (f" {basis} " in sentence) == (basis in set(curve["basis"]))


def test_shared_documents_without_a_click_are_named_as_such() -> None:
    shown = np.zeros((40, 3))
    shown[:20, :2], shown[20:, 2] = 4.0, 8.0
    clicks = np.zeros_like(shown)
    clicks[20:, 2] = 1.0
    _, sentences = fit(ClickLog(shown, clicks, np.arange(40)))
    assert "position 20 times, with evidence worth 40.0 impressions for the best pair of positions, none of them " \
        "clicked; " in sentences["connected"]  # fmt: skip


def test_one_query_has_an_interval() -> None:
    """All queries in one bucket: nothing to resample, the binomial part decides."""
    curve, _ = fit(draw_one_query())
    width = np.log(curve["high"] / curve["low"])[2:]
    assert ((width > 0.3) & (width < 4)).all()
