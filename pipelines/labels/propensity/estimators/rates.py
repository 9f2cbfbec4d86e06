"""Curves that are ratios of click rates: unbiased on randomised pages, baselines elsewhere."""

import numpy as np

from pipelines.labels.propensity.evidence import Floats, PositionEvidence
from pipelines.labels.propensity.information import Measurement
from pipelines.labels.propensity.measure import score_rates
from pipelines.labels.propensity.registry import Curve, build_flat_curve, estimator
from schemas.errors import DataQualityError


def measure_shuffled(evidence: PositionEvidence, curve: Curve) -> Measurement:
    """Information of the click rates on randomised pages."""
    return score_rates(evidence.shuffled_shown, evidence.shuffled_clicks).measure()


def measure_rates(evidence: PositionEvidence, curve: Curve) -> Measurement:
    """Information of the click rates on all pages."""
    return score_rates(evidence.shown.sum(axis=2), evidence.clicks.sum(axis=2)).measure()


@estimator("randomized", measure=measure_shuffled)
def randomized(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """θ_k = CTR_k/CTR_1 on the pages of systems that serve in random order (Joachims et al. 2017)."""
    shown, clicks = evidence.shuffled_shown.sum(axis=0), evidence.shuffled_clicks.sum(axis=0)
    if not clicks[0]:
        raise DataQualityError(
            "no clicks at position 1 on randomised pages",
            where="labels.propensity.shuffled_systems",
            hint="list the systems that serve in random order, or choose the estimator all_pairs",
        )
    return build_flat_curve(_ratio(shown, clicks, assumed))


@estimator("coec", measure=measure_rates)
def coec(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """Clicks over expected clicks (Zhang and Jones 2007): θ_k = CTR_k/CTR_1 on all pages.

    It counts the quality of the ranker as position bias: a baseline for comparison only.
    """
    return build_flat_curve(_ratio(evidence.shown.sum(axis=(0, 2)), evidence.clicks.sum(axis=(0, 2)), assumed))


@estimator("none", fixed=True)
def none(evidence: PositionEvidence, assumed: Floats) -> Curve:
    """Every impression counts as examined: naive click rates, as a baseline."""
    return build_flat_curve(np.ones(evidence.positions))


def _ratio(shown: Floats, clicks: Floats, assumed: Floats) -> Floats:
    rate = np.divide(clicks, shown, out=np.zeros_like(clicks), where=shown > 0)
    usable = (rate > 0) & (rate[0] > 0)
    return np.asarray(np.where(usable, rate / np.where(rate[0] > 0, rate[0], 1.0), assumed / assumed[0]))
