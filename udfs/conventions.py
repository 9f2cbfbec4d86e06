"""The conventions that decide edge cases of metrics; published with every number."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas.errors import ConfigurationError, did_you_mean
from schemas.problems import build_error, explain_problem, write_problem_key

# The treatments of documents without a label.
UNJUDGED = {
    "posterior": "estimated from ranks and clicks",
    "cut_then_condense": "taken out after the cut",
    "zero": "counted as 0",
    "condense": "taken out before the cut",
}
POINT_RULE = "cut_then_condense"  # where labels from behaviour are not drawn from a posterior


class Conventions(BaseModel):
    """Choices on which evaluators differ without being wrong."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    no_relevant: Literal["undefined", "zero"] = Field(
        default="undefined", description="A query without relevant documents: left out of means and counted, or 0."
    )
    nothing_returned: Literal["zero", "skip"] = Field(
        default="zero", description="A labelled query for which a system returned nothing: 0, or left out."
    )
    unjudged: Literal["auto", "posterior", "zero", "condense", "cut_then_condense"] = Field(
        default="auto",
        description="A ranked document without a label: gain 0 (`zero`), taken out before the cut at k (`condense`) "
        "or after it (`cut_then_condense`, nothing moves up from below k). `posterior`, for labels from behaviour: "
        "every document of the pool has a posterior of its grade, shown or not; metrics are means over draws from it, "
        "and nothing is taken out. The other rules score the published grades of documents that were shown. `auto` is "
        "`zero` for human judgments, `posterior` for labels that the run makes from a log, and `cut_then_condense` for "
        "labels from behaviour that have no posterior: those of `labels_of`, and of another `labels.grade.objective` "
        "than `click` or `scale` than `cuts`.",
    )
    ties: Literal["doc_id_desc", "doc_id_asc", "error"] = Field(
        default="doc_id_desc", description="Documents at equal score or rank: by doc_id, or the run stops."
    )
    duplicates: Literal["best", "error"] = Field(
        default="best", description="The same document twice in a list: its best place is kept, or the run stops."
    )
    order: Literal["rank", "score", "score_float32"] = Field(
        default="rank",
        description="What orders a list: rank where given and score otherwise, or score alone, at full precision, as "
        "trec_eval 10 compares them, or as 32-bit floats, as its versions up to 9.0.8 do. A rank beside the score is "
        "not read then.",
    )
    depth: int | None = Field(
        default=None,
        ge=1,
        description="Documents of a list that are scored, as `trec_eval -M`; all of them where not set. Documents "
        "below are not scored, even by metrics without a cut-off.",
    )
    rel: float | None = Field(
        default=None, description="The smallest grade that counts as relevant; anything above 0 where not set."
    )
    max_grade: float | None = Field(
        default=None,
        gt=0,
        description="Top of the label scale, for err and graded rbp; the largest label where not set.",
    )

    if not TYPE_CHECKING:  # the fields are the arguments

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise build_error(error, _explain) from None

        # As a section of a configuration it is not made by calling the class, so that errors have their whole key.
        __init__.__pydantic_base_init__ = True


def read_conventions(value: Any) -> Conventions:
    """The conventions of an argument: as they are, of a mapping, or the defaults where it is None."""
    if value is None:
        return Conventions()
    if not isinstance(value, Conventions | Mapping):
        hint = 'give assay.Conventions(order="score"), for instance, or a mapping'
        raise ConfigurationError(f"conventions is a {type(value).__name__}", hint=hint)
    return value if isinstance(value, Conventions) else Conventions(**{str(key): inner for key, inner in value.items()})


def _explain(details: Any) -> str:
    place = f"in assay.Conventions at {write_problem_key(details)}"
    return explain_problem(details, place, lambda: did_you_mean(str(details["loc"][-1]), Conventions.model_fields))
