"""The configuration of segments' bands, certainty, comparison and the gate."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from pipelines.section import Section
from schemas.errors import ConfigurationError
from udfs.registry import parse

TRAFFIC_BAND, RELEVANT_BAND = "traffic_band", "relevant_band"
BANDS = (TRAFFIC_BAND, RELEVANT_BAND)  # segments that are made from the results, not read from `queries`


def _canonical(text: str) -> str:
    try:
        return parse(text).name
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


MetricName = Annotated[str, AfterValidator(_canonical)]
Share = Annotated[float, Field(gt=0, lt=1)]
MIN_QUERIES = 100  # below it, what is left of a log decides nothing


class Bands(Section):
    """Segments made from the results: `traffic_band` and `relevant_band`, to be named in `segments`."""

    traffic: tuple[Share, Share] = Field(
        (0.5, 0.9), description="Shares of all traffic, busiest queries first, at which head and torso end."
    )
    relevant: tuple[int, ...] = Field(
        (1, 5),
        min_length=1,
        description="Numbers of relevant documents at which a band ends; 1 and 5 give 0, 1, 2-5, 6+.",
    )

    @field_validator("traffic", "relevant")
    @classmethod
    def _rising(cls, cuts: tuple[float, ...]) -> tuple[float, ...]:
        if list(cuts) != sorted(set(cuts)) or cuts[0] <= 0:
            raise ValueError("the ends of bands are above 0 and rise")
        return cuts


class Statistics(Section):
    """How certain a number is."""

    interval: Literal["t", "bootstrap"] = Field(
        "t",
        description="Intervals of means and differences: t, or percentiles of the Poisson bootstrap, which cover too "
        "little below about 100 queries. Weighted and pooled averages always have linearised t intervals.",
    )
    confidence: Share = Field(0.95, description="Confidence of the intervals; 1 minus it is the level of the tests.")
    tests: tuple[Literal["randomisation", "bootstrap"], ...] = Field(
        (), description="Tests to show beside the paired t test."
    )
    replicates: int = Field(1000, ge=100, description="Replicates of the bootstrap and of the randomisation test.")
    seed: int = Field(0, ge=0, description="Seed of the replicates.")
    cluster: str | None = Field(
        None, description="A column of `queries` whose equal values hang together (an intent, a category)."
    )
    label_draws: int = Field(
        0,
        ge=0,
        description="Times that grades are drawn from their uncertainty (the posterior of labels from behaviour, a "
        "column `grade_sd` of judgments) and everything is scored again, so that errors of differences hold that of "
        "the labels; 0 takes labels as true.",
    )
    max_values: int = Field(1000, ge=1, description="Most values that a segment may have.")
    many_values: Literal["refuse", "other"] = Field(
        "refuse", description="A segment with more: the run stops, or the smallest values become `(other)`."
    )

    @field_validator("label_draws")
    @classmethod
    def _several(cls, draws: int) -> int:
        if draws == 1:
            raise ValueError("one draw shows no spread: use 0, or 2 and more (5 to 20 are usual)")
        return draws


class Compare(Section):
    """Which systems are compared, and how many tests count as one family."""

    baseline: str | None = Field(None, description="The system that the others are compared with.")
    pairs: Literal["baseline", "all"] = Field(
        "baseline", description="Every system against the baseline, or every pair of systems."
    )
    correction: Literal["holm", "bh", "none"] = Field(
        "holm", description="Adjustment of p-values for the size of the family."
    )
    family: Literal["gate", "all"] = Field(
        "gate",
        description="The tests of one pair that are adjusted together: the gate's metrics in every segment (all "
        "metrics where there is no gate), or all metrics in every segment.",
    )
    min_judged: Share | Literal["auto"] | None = Field(
        "auto",
        description="Count only queries where judged@k, at the metric's own k, is at least this: for a system's mean "
        "in its own lists, for a comparison in both; judged@k is computed for it. auto is 0.7 for labels made from "
        "behaviour and no bound for people's judgments.",
    )
    goal: Literal["cart", "purchase"] | None = Field(
        None,
        description="With labels made from behaviour: compare also by grades from the lift of this outcome alone, and "
        "say so where a gain is not found there. Costs a second scoring.",
    )
    sensitivity: bool = Field(
        True,
        description="With `unjudged: cut_then_condense`: show beside each headline comparison what it would be with "
        "unjudged documents counted as 0, or taken out before the cut. Costs a second scoring.",
    )
    movers: int = Field(10, ge=0, description="Queries with the largest gains, and as many losses, to keep per pair.")


class Condition(Section):
    """One condition of release. Exactly one of drop, relative_drop, superiority and at_least."""

    metric: MetricName = Field(description="The metric, one of `metrics`.")
    segment: str = Field("all", description="The segment as in `segments`; parts of a combination joined by ` / `.")
    value: str | None = Field(None, description="One value of the segment; all of them where not set.")
    candidate: str | None = Field(None, description="The system it is about; all but the baseline where not set.")
    drop: float | None = Field(None, ge=0, description="Largest tolerated drop below the baseline.")
    relative_drop: float | None = Field(None, ge=0, lt=1, description="The same as a share of the baseline's mean.")
    superiority: bool = Field(False, description="The candidate must be better than the baseline.")
    at_least: float | None = Field(None, description="The mean itself must reach this, whatever the baseline.")
    confidence: Share = Field(0.95, description="One-sided confidence of the bound that must lie above.")
    min_queries: int = Field(MIN_QUERIES, ge=2, description="With fewer queries the condition is undecidable.")
    min_judged: Share | None = Field(
        None, description="With a lower mean judged@k of the candidate the condition is undecidable."
    )

    @model_validator(mode="after")
    def _one_demand(self) -> Condition:
        given = [self.drop is not None, self.relative_drop is not None, self.superiority, self.at_least is not None]
        if sum(given) != 1:
            raise ValueError("give exactly one of drop, relative_drop, superiority and at_least")
        if self.value is not None and self.segment == "all":
            raise ValueError("a value needs the segment it is a value of")
        return self

    @property
    def absolute(self) -> bool:
        """Whether it can be judged without a baseline."""
        return self.at_least is not None

    @property
    def demand(self) -> str:
        """The condition in a few words."""
        if self.at_least is not None:
            wanted = f"≥ {self.at_least:g}"
        elif self.superiority:
            wanted = "better than baseline"
        elif self.drop is not None:
            wanted = f"drop < {self.drop:g}"
        else:
            wanted = f"drop < {self.relative_drop:.3g} of baseline"
        where = "" if self.segment == "all" else f" in {self.segment}" + (f" = {self.value}" if self.value else "")
        return f"{self.metric}{where} {wanted}"
