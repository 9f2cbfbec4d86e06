"""What the estimation of position bias can be told."""

from typing import Literal

from pydantic import Field

from pipelines.section import Section

EstimatorName = Literal["all_pairs", "em", "randomized", "trust_bias", "coec", "none", "sdbn", "dcm", "ubm"]


class PropensitySettings(Section):
    """Which estimator, and when to believe it."""

    estimator: EstimatorName = Field("all_pairs", description="how the chance of being looked at is found")
    shuffled_systems: tuple[str, ...] = Field((), description="systems that serve in random order, for `randomized`")
    max_position: int = Field(50, gt=1, description="positions beyond this one share its propensity")
    assumed_eta: float = Field(
        1.0, ge=0, description="where the log cannot say: propensity (1/k)^η, marked as assumed in the output"
    )
    minimum_edge: float = Field(
        10.0, ge=0, description="impressions that documents seen at two positions must have there, to connect them"
    )
    max_cells: int = Field(
        2_000_000, gt=0, description="counts that em, trust_bias and the session models fit at most; queries are drawn"
    )
    checked_cells: int = Field(200_000, ge=0, description="counts that the diagnostics of other estimators look at")
    moving_share: float = Field(
        0.05, ge=0, le=1, description="share of impressions off a document's usual place, within one system and day, "
        "from which on the ranker is called personalised",
    )  # fmt: skip
    jackknife: bool = Field(True, description="intervals, by leaving out one of 50 buckets of queries at a time")
