"""Session models, for people who read from the top and stop: where one looks depends on the clicks above."""

import numpy as np

from pipelines.propensity.em import fit_counts
from pipelines.propensity.evidence import Cells, Evidence, Floats
from pipelines.propensity.registry import Curve, estimator


@estimator("ubm", history=True, cells=True)
def ubm(evidence: Evidence, assumed: Floats) -> Curve:
    """User browsing model (Dupret and Piwowarski 2008): P(click) = γ_{k,l}·α_qd, l the position of the last click.

    It is the position-based model with (position, last click) in the place of position, so the same EM finds it.
    """
    return _with_history(fit_browsing(evidence.cells, assumed))


@estimator("dcm", history=True, cells=True)
def dcm(evidence: Evidence, assumed: Floats) -> Curve:
    """Dependent click model (Guo et al. 2009), closed form; see `first_click_rates` and `looked_at`."""
    return _with_history(looked_at(evidence.cells, first_click_rates(evidence.cells), evidence.positions))


@estimator("sdbn", history=True, cells=True)
def sdbn(evidence: Evidence, assumed: Floats) -> Curve:
    """Simplified dynamic Bayesian network (Chapelle and Zhang 2009), closed form.

    Its curve is that of `dcm`: both say that one reads on until a click ends the search, here by the document's
    satisfaction (see `satisfaction`), there by its position.
    """
    return _with_history(looked_at(evidence.cells, first_click_rates(evidence.cells), evidence.positions))


def _with_history(curve: Floats) -> Curve:
    return Curve(curve, np.zeros(curve.shape[0]))


def fit_browsing(cells: Cells, assumed: Floats) -> Floats:
    """γ[position, last click], relative to the first position."""
    size = assumed.size
    place = cells.position * (size + 1) + cells.last_click
    start = np.repeat(assumed, size + 1)
    fitted = fit_counts(cells.pair, place, cells.shown, cells.clicks, start).examination.reshape(size, size + 1)
    return np.asarray(fitted / fitted[0, 0])


def first_click_rates(cells: Cells) -> Floats:
    """α of each pair: clicks over impressions among results with no click above them; nan where there was none.

    One reads on until the first click, so these results were looked at for certain, whatever came later. The textbook
    form also counts results up to the last click, which picks pages by their future and is biased on short pages.
    """
    sure = cells.last_click == 0
    shown = np.bincount(cells.pair[sure], weights=cells.shown[sure], minlength=cells.pairs)
    clicks = np.bincount(cells.pair[sure], weights=cells.clicks[sure], minlength=cells.pairs)
    return np.asarray(np.divide(clicks, shown, out=np.full(cells.pairs, np.nan), where=shown > 0))


def looked_at(cells: Cells, rates: Floats, positions: int) -> Floats:
    """P(looked at | position k, last click l) = Σ C/Σ N·α over the pairs at that place; 1 where nothing was clicked.

    With l = k − 1 this is the dependent click model's λ_{k−1}, the chance to go on after a click.
    """
    known = ~np.isnan(rates[cells.pair])
    place = (cells.position * (positions + 1) + cells.last_click)[known]
    size = positions * (positions + 1)
    expected = np.bincount(place, weights=(cells.shown * rates[cells.pair])[known], minlength=size)
    clicks = np.bincount(place, weights=cells.clicks[known], minlength=size)
    chance = np.divide(clicks, expected, out=np.ones(size), where=expected > 0).reshape(positions, positions + 1)
    chance[:, 0] = 1.0
    return np.clip(chance, 1e-4, 1.0)


def satisfaction(cells: Cells, rates: Floats) -> Floats:
    """σ of each pair, the chance that it ends the search once clicked; nan where no result followed it.

    1 − (clicks on the results right below it)/(those expected had all read on, Σ N·α).
    """
    follows = (cells.after >= 0) & ~np.isnan(rates[cells.pair])
    above = cells.after[follows]
    size = max(cells.pairs, int(cells.after.max(initial=-1)) + 1)
    expected = np.bincount(above, weights=(cells.shown * rates[cells.pair])[follows], minlength=size)
    clicks = np.bincount(above, weights=cells.clicks[follows], minlength=size)
    return np.asarray(1 - np.divide(clicks, expected, out=np.full(size, np.nan), where=expected > 0))
