"""Pages of clicks drawn from published click models, without Spark, and counted as the tally counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipelines.labels.history import History, Outcome, Read, count_states
from pipelines.labels.propensity.evidence import Cells, Floats, Ints, PositionEvidence

Model = Literal["pbm", "ubm", "dcm", "sdbn"]
QUERIES, DOCUMENTS, ORDERS = 10, 14, 40
PAIRS = QUERIES * DOCUMENTS


@dataclass(frozen=True)
class ClickPages:
    """The pair and the click at each position of each page."""

    pairs: Ints  # [page, position]
    clicks: NDArray[np.bool_]

    @property
    def positions(self) -> int:
        return int(self.pairs.shape[1])

    def where(self, pages: slice) -> ClickPages:
        return ClickPages(self.pairs[pages], self.clicks[pages])

    def states(self, history: History | None) -> Ints:
        """The state of each result, by its definition in `pipelines.labels.history`."""
        places = np.arange(1, self.positions + 1)
        clicked = np.where(self.clicks, places, 0)
        if history == "last_click":
            above = np.maximum.accumulate(clicked, axis=1)
            return np.hstack([np.zeros((len(clicked), 1), dtype=np.int64), above[:, :-1]])
        last = clicked.max(axis=1, keepdims=True)
        states = np.where(places < last, Read.ABOVE, np.where(places == last, Read.LAST, Read.BELOW))
        return np.where(last == 0, Read.NO_CLICK, states) if history == "read" else np.zeros_like(clicked)

    def cells(self, history: History | None, outcome: Outcome = "click") -> Cells:
        """Impressions and clicks by pair, position and state."""
        states = self.states(history)
        clicks = self.clicks if outcome == "click" else self.clicks & (states == Read.LAST)
        sizes = (PAIRS, self.positions, count_states(history, self.positions))
        places = np.broadcast_to(np.arange(self.positions), states.shape)
        flat = np.ravel_multi_index((self.pairs, places, states), sizes).ravel()
        shown, clicked = (np.bincount(flat, weights).astype(np.float64) for weights in (None, clicks.ravel()))
        used = np.flatnonzero(shown)
        pair, position, state = np.unravel_index(used, sizes)
        return Cells(
            pair=pair, position=position, history=state, shown=shown[used], clicks=clicked[used], bucket=pair % 50
        )

    def evidence(self, history: History | None, outcome: Outcome = "click") -> PositionEvidence:
        """Sums by position and state, in one bucket, with the cells; no edges."""
        cells = self.cells(history, outcome)
        shape = (1, self.positions, count_states(history, self.positions))
        shown, clicks = np.zeros((2, *shape))
        np.add.at(shown[0], (cells.position, cells.history), cells.shown)
        np.add.at(clicks[0], (cells.position, cells.history), cells.clicks)
        edges = np.zeros((1, self.positions, self.positions))
        return PositionEvidence(
            shown=shown,
            clicks=clicks,
            edge_clicks=edges,
            edge_rest=edges,
            edge_pairs=edges,
            shuffled_shown=shown[:, :, 0],
            shuffled_clicks=clicks[:, :, 0],
            cells=cells,
        )


def draw_pages(
    model: Model, attraction: Floats, parameter: Floats, *, pages: int, positions: int = 10, seed: int = 7
) -> ClickPages:
    """Pages of a model: `parameter` is θ[k] (pbm), γ[k, l] (ubm), λ[k] (dcm) or σ[pair] (sdbn)."""
    random = np.random.default_rng(seed)
    orders = np.argsort(random.random((QUERIES, ORDERS, DOCUMENTS)), axis=2)[:, :, :positions]
    query = random.integers(0, QUERIES, pages)
    pairs = query[:, None] * DOCUMENTS + orders[query, random.integers(0, ORDERS, pages)]
    clicks = np.zeros(pairs.shape, dtype=np.bool_)
    last, reading = np.zeros(pages, dtype=np.int64), np.ones(pages, dtype=np.bool_)
    for k in range(positions):
        chance = attraction[pairs[:, k]]
        if model == "pbm":
            chance = chance * parameter[k]
        elif model == "ubm":
            chance = chance * parameter[k, last]
        click = reading & (random.random(pages) < chance)
        if model in ("dcm", "sdbn"):
            stops = 1 - parameter[k] if model == "dcm" else parameter[pairs[:, k]]
            reading &= ~(click & (random.random(pages) < stops))
        last = np.where(click, k + 1, last)
        clicks[:, k] = click
    return ClickPages(pairs, clicks)
