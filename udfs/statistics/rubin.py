"""Errors of two kinds added: that of the queries, and that of labels which are estimates themselves."""

from __future__ import annotations

import numpy as np

from udfs.ragged import Floats
from udfs.statistics.ratio import Estimate


def with_label_error(estimate: Estimate, between: Floats, draws: int) -> Estimate:
    """The estimate with the variance between `draws` sets of drawn labels added.

    T = W + (1 + 1/M) · B on the degrees of freedom of Barnard and Rubin, Biometrika 1999; Rubin, Multiple
    Imputation for Nonresponse in Surveys, 1987.
    """
    added = (1.0 + 1.0 / draws) * between
    within = estimate.stderr**2
    total = within + added
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, added / total, 0.0)
        of_draws = (draws - 1) / share**2
        of_queries = (estimate.degrees + 1) / (estimate.degrees + 3) * estimate.degrees * (1 - share)
        degrees = np.where(share > 0, 1.0 / (1.0 / of_draws + 1.0 / of_queries), estimate.degrees)
    return Estimate(estimate.value, np.sqrt(total), degrees)
