"""The dependent click model: after a click, users go on with a probability that depends on the position."""

import numpy as np

from pipelines.labels.history import Read
from pipelines.labels.propensity.estimators.sdbn import build_read_curve
from pipelines.labels.propensity.evidence import Floats, PositionEvidence
from pipelines.labels.propensity.registry import Curve, estimator


@estimator("dcm", history="read", fixed=True)
def dcm(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """Dependent click model (Guo, Liu and Wang 2009), in closed form: a = clicks / examinations.

    Results at or above the last click of their page are examined, and all results of a page without a click. The
    probability to go on after a click at k is λ_k = 1 − last clicks at k / clicks at k (`estimate_continuation`).
    Biased: a is too high and λ too low where users read on below their last click, most at the end of a page.
    `first_click` has no such bias.
    """
    return build_read_curve(evidence.positions, (Read.NO_CLICK, Read.ABOVE, Read.LAST))


def estimate_continuation(evidence: PositionEvidence) -> Floats:
    """λ by position; nan where nothing was clicked."""
    clicks = evidence.clicks.sum(axis=0)
    total = clicks.sum(axis=1)
    last = np.divide(clicks[:, Read.LAST], total, out=np.full(total.size, np.nan), where=total > 0)
    return np.asarray(1 - last)
