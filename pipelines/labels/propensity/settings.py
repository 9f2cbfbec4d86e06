"""Settings of the estimation of position bias."""

from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.errors import did_you_mean
from schemas.section import Names, Section

DEFAULT_ESTIMATOR = "all_pairs"


def list_estimators() -> list[str]:
    """The names of all estimators. Imported on demand: they need SciPy, the default configuration does not."""
    from pipelines.labels.propensity.registry import ESTIMATORS

    return list(ESTIMATORS)


def _check_estimator(name: str) -> str:
    if name != DEFAULT_ESTIMATOR and name not in list_estimators():
        raise ValueError(f"unknown estimator {name!r}: {did_you_mean(name, list_estimators())}")
    return name


EstimatorName = Annotated[str, AfterValidator(_check_estimator), Names(list_estimators)]


class PropensitySettings(Section):
    """How position bias is estimated and checked."""

    estimator: EstimatorName = Field(DEFAULT_ESTIMATOR, description="The estimator of position bias.")
    shuffled_systems: tuple[str, ...] = Field((), description="Systems that serve in random order, for `randomized`.")
    max_position: int = Field(50, gt=1, description="Positions beyond this one share its propensity.")
    assumed_eta: float = Field(
        1.0, ge=0, description="Exponent η of the prior (1/k)^η, which decides where the log has no evidence."
    )
    minimum_edge: float = Field(
        10.0, ge=0, description="Impressions of shared documents that two positions need to count as connected."
    )
    max_cells: int = Field(
        2_000_000, gt=0, description="Most counts that em, ubm, first_click and trust_bias fit; queries are sampled."
    )
    checked_cells: int = Field(
        200_000, ge=0, description="Most counts that the diagnostics of other estimators read; queries are sampled."
    )
    moving_share: float = Field(
        0.05, ge=0, le=1, description="Share of impressions off a document's usual position, within one system and "
        "day, from which the ranker is reported as personalised.",
    )  # fmt: skip
    jackknife: bool = Field(
        True, description="Errors of trust_bias and first_click by 50 refits, each without one bucket of queries."
    )
