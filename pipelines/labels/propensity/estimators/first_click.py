"""Readers who stop at a click, without bias: attractiveness from results with no click above them."""

import numpy as np

from pipelines.labels.propensity.evidence import Cells, Floats, PositionEvidence
from pipelines.labels.propensity.registry import Curve, estimator


@estimator("first_click", history="last_click", cells=True, fixed=True)
def first_click(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """The cascade up to the first click (Craswell et al. 2008), in closed form, for logs with several clicks.

    Users read on until they click, so results with no click above them were examined, in the models behind `sdbn` and
    `dcm` alike. Results at or above the last click, which the published forms of both count, are selected by later
    clicks: that biases attractiveness upwards, most at the end of a page.
    """
    cells = evidence.cells
    examination = estimate_examination(cells, estimate_first_click_rates(cells), evidence.positions)
    return Curve(examination, np.zeros(evidence.positions))


def estimate_first_click_rates(cells: Cells) -> Floats:
    """α of each pair: clicks over impressions among results with no click above them; nan where there was none."""
    first = cells.history == 0
    shown = np.bincount(cells.pair[first], weights=cells.shown[first], minlength=cells.pairs)
    clicks = np.bincount(cells.pair[first], weights=cells.clicks[first], minlength=cells.pairs)
    return np.asarray(np.divide(clicks, shown, out=np.full(cells.pairs, np.nan), where=shown > 0))


def estimate_examination(cells: Cells, rates: Floats, positions: int) -> Floats:
    """P(examined | position k, last click l) = Σ C/Σ N·α over the pairs there; 1 where nothing was clicked.

    With l = k − 1 this is the dependent click model's λ_{k−1}, the probability to go on after a click.
    """
    rated = ~np.isnan(rates[cells.pair])
    place = (cells.position * (positions + 1) + cells.history)[rated]
    size = positions * (positions + 1)
    expected = np.bincount(place, weights=(cells.shown * rates[cells.pair])[rated], minlength=size)
    clicks = np.bincount(place, weights=cells.clicks[rated], minlength=size)
    chance = np.divide(clicks, expected, out=np.ones(size), where=expected > 0).reshape(positions, positions + 1)
    chance[:, 0] = 1.0
    return np.clip(chance, 1e-4, 1.0)
