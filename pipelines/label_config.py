"""The configuration of labels: how a log becomes grades. Every default of it stands here or in the two parts below."""

from typing import Literal, Self

from pydantic import Field, model_validator

from pipelines.denoise.settings import DenoiseSettings
from pipelines.propensity.settings import PropensitySettings
from pipelines.section import Section


class AttributionSettings(Section):
    window_days: float = Field(7, gt=0, description="a cart or purchase belongs to a click at most so long before it")


class GradeSettings(Section):
    """How evidence becomes a grade."""

    objective: Literal["click", "cart", "purchase"] = Field(
        "click", description="whose lift sets the grade; cart and purchase only where they are frequent"
    )
    scale: Literal["cuts", "quantiles", "lift"] = Field(
        "cuts",
        description="cuts: grades 0–3 by lift; quantiles: by rank within the query, a forced distribution; "
        "lift: real-valued labels, to be scored with gain=linear and an explicit rel",
    )
    cuts: tuple[float, float, float] = Field((1.0, 1.5, 2.5), description="lift from which on grade 1, 2, 3 is given")
    quantiles: tuple[float, float, float] = Field(
        (0.5, 0.75, 0.9), description="share of the query's graded documents that lies below grade 1, 2, 3"
    )
    purchase_promotes: float = Field(2.0, gt=0, description="lower tenth of the purchase lift that gives grade 3")
    cart_promotes: float = Field(1.5, gt=0, description="lower tenth of the cart lift that gives at least grade 2")
    minimum_examinations: float = Field(3.0, ge=0, description="examinations below which a pair stays unjudged")
    minimum_users: int = Field(2, ge=1, description="people below which a pair stays unjudged")
    query_prior: float = Field(200.0, ge=0, description="examinations at the overall rate that every query starts with")

    @model_validator(mode="after")
    def _rising(self) -> Self:
        for name in ("cuts", "quantiles"):
            values = getattr(self, name)
            if list(values) != sorted(set(values)):
                raise ValueError(f"{name} must rise: {values}")
        return self


class HumanSettings(Section):
    cuts: tuple[float, float, float] = Field(
        (1.0, 2.0, 3.0), description="human grade from which on it is 1, 2, 3 here"
    )


class LabelConfig(Section):
    """From logs to labels."""

    contexts: tuple[str, ...] = Field((), description="columns of impressions with their own curves, such as device")
    denoise: DenoiseSettings = Field(DenoiseSettings(), description="which rows are not people reading")
    attribution: AttributionSettings = Field(AttributionSettings(), description="which click a purchase came from")
    propensity: PropensitySettings = Field(PropensitySettings(), description="how position bias is found")
    grade: GradeSettings = Field(GradeSettings(), description="how evidence becomes a grade")
    human: HumanSettings = Field(HumanSettings(), description="how human judgments map to grades")
