"""Session models recover the parameters of a million pages drawn from their own model."""

import numpy as np
import pytest

from pipelines.propensity.evidence import Cells, Floats
from pipelines.propensity.sessions import first_click_rates, fit_browsing, looked_at, satisfaction

PAGES, QUERIES, DOCUMENTS, SHOWN = 1_000_000, 10, 14, 10


def draw_cells(kind: str, attraction: Floats, parameter: Floats) -> Cells:
    """Pages of one model, counted: `parameter` is γ[k, l] (ubm), λ[k] (dcm) or σ[pair] (sdbn)."""
    random = np.random.default_rng(7)
    query = random.integers(0, QUERIES, PAGES)
    orders = np.array([[random.permutation(DOCUMENTS)[:SHOWN] for _ in range(4)] for _ in range(QUERIES)])
    pairs = query[:, None] * DOCUMENTS + orders[query, random.integers(0, 4, PAGES)]
    last, after, reading = np.zeros(PAGES, int), np.full(PAGES, -1), np.ones(PAGES, bool)
    keys, clicks = [], []
    for k in range(SHOWN):
        pair = pairs[:, k]
        looked = random.random(PAGES) < parameter[k, last] if kind == "ubm" else reading
        click = looked & (random.random(PAGES) < attraction[pair])
        keys.append(np.stack([pair, np.full(PAGES, k), last, np.where(last == k, after, -1)]))
        clicks.append(click)
        goes_on = parameter[k] if kind == "dcm" else 1 - parameter[pair] if kind == "sdbn" else 1.0
        reading = reading & (~click | (random.random(PAGES) < goes_on))
        last, after = np.where(click, k + 1, last), np.where(click, pair, after)
    return count(np.concatenate(keys, axis=1), np.concatenate(clicks))


def count(keys: Floats, clicks: Floats) -> Cells:
    sizes = (QUERIES * DOCUMENTS, SHOWN, SHOWN + 1, QUERIES * DOCUMENTS + 1)
    flat = np.ravel_multi_index((keys[0], keys[1], keys[2], keys[3] + 1), sizes)
    every, clicked = (np.bincount(flat, weights).astype(np.float64) for weights in (None, clicks))
    cells = np.flatnonzero(every)
    pair, position, last, after = np.unravel_index(cells, sizes)
    return Cells(pair, position, last, after - 1, every[cells], clicked[cells], pair % 50)


@pytest.fixture(scope="module")
def attraction() -> Floats:
    return np.random.default_rng(1).uniform(0.15, 0.6, QUERIES * DOCUMENTS)


def relative_error(found: Floats, true: Floats) -> float:
    return float(np.nanmean(np.abs(found / true - 1)))


def test_dcm_recovers_attraction_and_the_chance_to_go_on(attraction: Floats) -> None:
    onward = np.linspace(0.8, 0.4, SHOWN)
    cells = draw_cells("dcm", attraction, onward)
    rates = first_click_rates(cells)
    seen = np.unique(cells.pair)
    found = looked_at(cells, rates, SHOWN)
    next_after_click = np.array([found[k + 1, k + 1] for k in range(SHOWN - 1)])
    assert relative_error(rates[seen], attraction[: rates.size][seen]) < 0.03
    assert relative_error(next_after_click, onward[:-1]) < 0.03


def test_sdbn_recovers_attraction_and_satisfaction(attraction: Floats) -> None:
    satisfied = np.random.default_rng(2).uniform(0.4, 0.8, attraction.size)
    cells = draw_cells("sdbn", attraction, satisfied)
    rates = first_click_rates(cells)
    seen = np.unique(cells.pair)
    followed = np.unique(cells.after[cells.after >= 0])
    assert relative_error(rates[seen], attraction[: rates.size][seen]) < 0.03
    assert relative_error(satisfaction(cells, rates)[followed], satisfied[followed]) < 0.03


def test_ubm_recovers_examination_by_position_and_last_click(attraction: Floats) -> None:
    apart = np.abs(np.arange(SHOWN)[:, None] + 1 - np.arange(SHOWN + 1)[None, :])
    looks = 0.95 * np.maximum(apart, 1) ** -0.5
    cells = draw_cells("ubm", attraction, looks)
    found = fit_browsing(cells, np.ones(SHOWN))
    place = cells.position * (SHOWN + 1) + cells.last_click
    shown = np.bincount(place, cells.shown, minlength=SHOWN * (SHOWN + 1)).reshape(SHOWN, SHOWN + 1)
    known = shown > 1_000
    assert relative_error(found[known], (looks / looks[0, 0])[known]) < 0.03
