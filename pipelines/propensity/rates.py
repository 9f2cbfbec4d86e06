"""Curves that are plain ratios of click rates: right where positions were drawn by lot, baselines elsewhere."""

import numpy as np

from pipelines.propensity.evidence import Evidence, Floats
from pipelines.propensity.registry import Curve, estimator, flat
from schemas.errors import DataQualityError


@estimator("randomized")
def randomized(evidence: Evidence, assumed: Floats) -> Curve:
    """θ_k = CTR_k/CTR_1 on the pages of systems that serve in random order (Joachims et al. 2017)."""
    shown, clicks = evidence.shuffled_shown.sum(axis=0), evidence.shuffled_clicks.sum(axis=0)
    if not clicks[0]:
        raise DataQualityError(
            "no clicks at position 1 on randomised pages",
            where="labels.propensity.shuffled_systems",
            hint="name the systems that serve in random order, or choose the estimator all_pairs",
        )
    return flat(_ratio(shown, clicks, assumed))


@estimator("coec")
def coec(evidence: Evidence, assumed: Floats) -> Curve:
    """Clicks over expected clicks (Zhang and Jones 2007): θ_k = CTR_k/CTR_1 on all pages.

    It takes the good rankers' own merit for position bias; a baseline to compare with, not to use.
    """
    return flat(_ratio(evidence.shown.sum(axis=(0, 2)), evidence.clicks.sum(axis=(0, 2)), assumed))


@estimator("none")
def none(evidence: Evidence, assumed: Floats) -> Curve:
    """Every impression counts as looked at: naive click rates, as a baseline."""
    return flat(np.ones(evidence.positions))


def _ratio(shown: Floats, clicks: Floats, assumed: Floats) -> Floats:
    rate = np.divide(clicks, shown, out=np.zeros_like(clicks), where=shown > 0)
    known = (rate > 0) & (rate[0] > 0)
    return np.asarray(np.where(known, rate / np.where(rate[0] > 0, rate[0], 1.0), assumed / assumed[0]))
