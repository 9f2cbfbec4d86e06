"""The simplified dynamic Bayesian network: users examine a page down to its last click."""

import numpy as np

from pipelines.labels.history import Read
from pipelines.labels.propensity.evidence import Floats, PositionEvidence
from pipelines.labels.propensity.registry import Curve, estimator

_EXAMINED = (Read.ABOVE, Read.LAST)


@estimator("sdbn", history="read", fixed=True)
def sdbn(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """Attractiveness by the simplified dynamic Bayesian network (Chapelle and Zhang 2009, γ = 1), in closed form.

    a = clicks / examinations, where results at or above the last click of their page are examined. A page without a
    click has no examined result. Biased upwards: results that an unsatisfied user skips below the last click are not
    counted. `first_click` has no such bias.
    """
    return build_read_curve(evidence.positions, _EXAMINED)


@estimator("sdbn_satisfaction", history="read", outcome="last_click", fixed=True)
def sdbn_satisfaction(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """Relevance a·s by the same model: attractiveness times satisfaction, s = last clicks / clicks.

    a·s = last clicks / examinations, so the last click of a page counts in place of every click. Biased upwards: the
    last click of a user who reads on and finds nothing counts as satisfied.
    """
    return build_read_curve(evidence.positions, _EXAMINED)


def build_read_curve(positions: int, examined: tuple[Read, ...]) -> Curve:
    """A curve that is 1 in the examined states and 0 in the others, at every position."""
    states = np.isin(np.arange(len(Read)), examined).astype(np.float64)
    return Curve(np.tile(states, (positions, 1)), np.zeros(positions))
