"""The configuration of bands, statistics, comparisons and the gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model, field_validator, model_validator

from pipelines.comparison.conditions.registry import ConditionKind, list_conditions
from schemas.errors import ConfigurationError
from schemas.section import Section
from udfs.registry import parse_metric


def _canonicalise(text: str) -> str:
    try:
        return parse_metric(text).name
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


MetricName = Annotated[str, AfterValidator(_canonicalise)]
Share = Annotated[float, Field(gt=0, lt=1)]
MIN_QUERIES = 100  # with fewer, a log decides nothing
LABEL_DRAWS = 30  # of a posterior


def band_column(key: str) -> str:
    """The column, and segment, of a key of `bands`."""
    return f"{key}_band"


class BandSettings(Section):
    """Segments derived from the results: `traffic_band` and `relevant_band`, to be named in `segments`."""

    traffic: tuple[Share, Share] = Field(
        (0.5, 0.9), description="Shares of all traffic, most frequent queries first, at which head and torso end."
    )
    relevant: tuple[int, ...] = Field(
        (1, 5),
        min_length=1,
        description="Numbers of relevant documents at which a band ends; 1 and 5 give 0, 1, 2-5, 6+.",
    )

    @field_validator("*")
    @classmethod
    def _check_order(cls, cuts: tuple[float, ...]) -> tuple[float, ...]:
        if list(cuts) != sorted(set(cuts)) or cuts[0] <= 0:
            raise ValueError("the ends of bands must be above 0 and ascending")
        return cuts


BANDS = tuple(map(band_column, BandSettings.model_fields))  # segments that are not read from `queries`


PAGE = "impressions."  # begins the name of a segment's column that is one of the log, not of `queries`


def strip_page(columns: Iterable[str]) -> tuple[str, ...]:
    """The columns of a segment under their names in the data and in the results."""
    return tuple(column.removeprefix(PAGE) for column in columns)


class StatisticsSettings(Section):
    """Confidence intervals, tests and segments."""

    interval: Literal["t", "bootstrap"] = Field(
        "t",
        description="Confidence intervals of means and differences: t, or percentiles of the Poisson bootstrap, which "
        "are too narrow below about 100 queries. Weighted and pooled averages always have linearised t intervals.",
    )
    confidence: Share = Field(
        0.95, description="Confidence of the intervals; 1 minus it is the significance level of the tests."
    )
    tests: tuple[Literal["randomisation", "bootstrap"], ...] = Field((), description="Tests besides the paired t test.")
    replicates: int = Field(1000, ge=100, description="Replicates of the bootstrap and of the randomisation test.")
    seed: int = Field(0, ge=0, description="Seed of the replicates.")
    cluster: str | None = Field(
        None,
        description="A column of `queries` whose values are clusters of dependent queries (an intent, a category).",
    )
    label_draws: int | None = Field(
        None,
        ge=0,
        description="Draws of the grades from their uncertainty (the posterior of labels from behaviour, the column "
        "`grade_sd` of judgments), whose variance is added to the errors; 0 takes judgments as true. Default: 30 for "
        "posteriors, otherwise 0.",
    )
    max_values: int = Field(1000, ge=1, description="Largest number of values of a segment.")
    many_values: Literal["refuse", "other"] = Field(
        "refuse", description="A segment with more values stops the run, or its smallest values become `(other)`."
    )

    @field_validator("label_draws")
    @classmethod
    def _check_draws(cls, draws: int | None) -> int | None:
        if draws == 1:
            raise ValueError("one draw has no variance: use 0, or 2 and more (5 to 20 are usual)")
        return draws


class CompareSettings(Section):
    """Which systems are compared, and which tests are one family."""

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
        "metrics where there is no gate), or all metrics in every segment. With `pairs: all`, those of all pairs.",
    )
    min_judged: Share | Literal["auto"] | None = Field(
        "auto",
        description="Count only queries where judged@k, at the metric's own k, is at least this: for a system's mean "
        "in its own lists, for a comparison in both; judged@k is computed for it. auto is 0.7 for labels made from "
        "behaviour with `unjudged: cut_then_condense`, and no bound otherwise.",
    )
    goal: Literal["cart", "purchase"] | None = Field(
        None,
        description="With labels made from behaviour: compare also by grades from the lift of this outcome alone, and "
        "report where a gain does not show there. Costs a second scoring.",
    )
    sensitivity: bool = Field(
        True,
        description="With `unjudged: posterior` or `cut_then_condense`: repeat each headline comparison by the other "
        "rules for unjudged documents. Costs a second scoring, with `posterior` a third.",
    )
    movers: int = Field(10, ge=0, description="Number of largest gains, and of largest losses, to publish per pair.")


class ConditionScope(Section):
    """What a condition is about."""

    metric: MetricName = Field(description="The metric, one of `metrics`.")
    segment: str = Field("all", description="The segment as in `segments`; parts of a combination joined by ` / `.")
    value: str | None = Field(None, description="One value of the segment; all of them where not set.")
    candidate: str | None = Field(None, description="The system it is about; all but the baseline where not set.")


def _add_kinds() -> type[ConditionScope]:
    """The scope with one key per registered kind of condition."""
    fields: dict[str, Any] = {
        kind.key: (kind.type, Field(kind.default, description=kind.description, **kind.limits))  # type: ignore[call-overload]
        for kind in list_conditions()
    }
    return create_model("ConditionKinds", __base__=ConditionScope, **fields)


if TYPE_CHECKING:
    ConditionKinds = ConditionScope
else:
    ConditionKinds = _add_kinds()


class GateCondition(ConditionKinds):
    """One condition of release: what it is about, exactly one kind with its limit, and how certain it must be."""

    confidence: Share = Field(0.95, description="One-sided confidence of the bound that is compared.")
    min_queries: int | None = Field(
        None,
        ge=2,
        description=f"With fewer queries the condition is undecidable. Default: {MIN_QUERIES}; 2 with `unjudged: "
        "posterior`, where the interval includes the error of the labels.",
    )
    min_judged: Share | None = Field(
        None, description="With a lower mean judged@k of the candidate the condition is undecidable."
    )

    @model_validator(mode="after")
    def _has_one_kind(self) -> GateCondition:
        if len(self._kinds) != 1:
            *keys, last = (kind.key for kind in list_conditions())
            raise ValueError(f"give exactly one of {', '.join(keys)} and {last}")
        if self.value is not None and self.segment == "all":
            raise ValueError("a value needs the segment it is a value of")
        return self

    @property
    def _kinds(self) -> list[ConditionKind]:
        return [kind for kind in list_conditions() if all(getattr(self, kind.key) is not v for v in (None, False))]

    @property
    def kind(self) -> ConditionKind:
        """The kind of condition that is set."""
        return self._kinds[0]

    @property
    def limit(self) -> Any:
        """The value that its kind is set to."""
        return getattr(self, self.kind.key)

    @property
    def absolute(self) -> bool:
        """Whether it can be judged without a baseline."""
        return not self.kind.needs_baseline

    @property
    def demand(self) -> str:
        """The condition in a few words."""
        where = "" if self.segment == "all" else f" in {self.segment}" + (f" = {self.value}" if self.value else "")
        return f"{self.metric}{where} {self.kind.describe(self.limit)}"
