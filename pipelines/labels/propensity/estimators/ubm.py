"""The user browsing model: examination depends on the position and on the last click above."""

import numpy as np

from pipelines.labels.propensity.estimators.em import PositionFit, fit_counts
from pipelines.labels.propensity.evidence import Cells, Floats, PositionEvidence
from pipelines.labels.propensity.measure import measure_cells
from pipelines.labels.propensity.registry import Curve, estimator


@estimator("ubm", measure=measure_cells, history="last_click", cells=True, graph=True)
def ubm(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """User browsing model (Dupret and Piwowarski 2008): P(click) = γ_{k,l}·α_qd, l the position of the last click.

    It is the position-based model with (position, last click) in place of the position, so the same expectation
    maximisation fits it.
    """
    examination = fit_browsing(evidence.cells, assumed).examination
    return Curve(examination / examination[0, 0], np.zeros(evidence.positions))


def fit_browsing(cells: Cells, assumed: Floats) -> PositionFit:
    """γ[position, last click] and α by pair; only the states that occur are fitted, the others stay as assumed."""
    size = assumed.size
    states, place = np.unique(cells.position * (size + 1) + cells.history, return_inverse=True)
    fit = fit_counts(cells.pair, place, cells.shown, cells.clicks, assumed[states // (size + 1)])
    scale = fit.examination[0] / assumed[0] if states.size else 1.0
    examination = np.repeat(assumed * scale, size + 1)
    examination[states] = fit.examination
    return PositionFit(examination.reshape(size, size + 1), fit.attraction, fit.log_likelihood)
