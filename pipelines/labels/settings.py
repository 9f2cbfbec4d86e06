"""Settings of labels: how a log becomes grades. All defaults are here and in the settings of denoise and propensity."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.propensity.settings import PropensitySettings
from schemas.section import Section


class AttributionSettings(Section):
    window_days: float = Field(7, gt=0, description="Longest time from a click to a cart or purchase it led to.")


class GradeSettings(Section):
    """How counts become grades."""

    objective: Literal["click", "cart", "purchase"] = Field(
        "click", description="The outcome whose lift sets the grade; cart and purchase only where they are frequent."
    )
    scale: Literal["cuts", "quantiles", "lift"] = Field(
        "cuts",
        description="cuts: grades 0–3 by lift; quantiles: by rank within the query, a forced distribution; "
        "lift: real-valued labels, to be scored with gain=linear and an explicit rel.",
    )
    cuts: tuple[float, float, float] = Field((1.0, 1.5, 2.5), description="Smallest lift of grades 1, 2 and 3.")
    quantiles: tuple[float, float, float] = Field(
        (0.5, 0.75, 0.9), description="Share of the query's graded documents below grades 1, 2 and 3."
    )
    purchase_promotes: float = Field(2.0, gt=0, description="10 % quantile of the purchase lift that gives grade 3.")
    cart_promotes: float = Field(1.5, gt=0, description="10 % quantile of the cart lift that gives at least grade 2.")
    minimum_examinations: float = Field(3.0, ge=0, description="Fewest examinations of a pair that is graded.")
    minimum_users: int = Field(2, ge=1, description="Fewest users of a pair that is graded.")
    query_prior: float = Field(
        200.0, ge=0, description="Prior of every query's click rate: examinations at the overall rate."
    )

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        for name in ("cuts", "quantiles"):
            values = getattr(self, name)
            if list(values) != sorted(set(values)):
                raise ValueError(f"{name} must increase: {values}")
        return self


class HumanSettings(Section):
    cuts: tuple[float, float, float] = Field(
        (1.0, 2.0, 3.0), description="Smallest human grade that becomes grade 1, 2 and 3."
    )


class LabelSettings(Section):
    """From logs to labels."""

    contexts: tuple[str, ...] = Field(
        (), description="Columns of impressions whose values have their own curves, e.g. device."
    )
    incremental: bool = Field(
        False,
        description="Keep the statistics of each day of the log in the warehouse, so that a run reads only days that "
        "are new or changed. Needs `{date}` in the paths of the log, and `days`.",
    )
    denoise: DenoiseSettings = Field(DenoiseSettings(), description="Which rows are dropped as noise.")
    attribution: AttributionSettings = Field(
        AttributionSettings(), description="Which click a cart or purchase belongs to."
    )
    propensity: PropensitySettings = Field(PropensitySettings(), description="How position bias is estimated.")
    grade: GradeSettings = Field(GradeSettings(), description="How counts become grades.")
    human: HumanSettings = Field(HumanSettings(), description="How human judgments map to grades.")
    opinions: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        None, description="Columns of `opinions` that are factors of the prior; default: every column beside its key."
    )

    @field_validator("opinions")
    @classmethod
    def _check_unique(cls, opinions: tuple[str, ...] | None) -> tuple[str, ...] | None:
        repeated = next((name for index, name in enumerate(opinions or ()) if name in (opinions or ())[:index]), None)
        if repeated is not None:
            raise ValueError(f"{repeated} is listed twice")
        return opinions
