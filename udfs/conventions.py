"""What a metric's number means at the edges; stored with every number that is published."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

# The ways to count documents without a label, in words; the first is the rule for labels made from behaviour.
UNJUDGED = {
    "cut_then_condense": "taken out after the cut",
    "zero": "counted as 0",
    "condense": "taken out before the cut",
}


class Conventions(BaseModel):
    """The choices that two evaluators may make differently and still both be right."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    no_relevant: Literal["undefined", "zero"] = Field(
        default="undefined", description="A query without relevant documents: left out of means and counted, or 0."
    )
    nothing_returned: Literal["zero", "skip"] = Field(
        default="zero", description="A labelled query for which a system returned nothing: 0, or left out."
    )
    unjudged: Literal["auto", "zero", "condense", "cut_then_condense"] = Field(
        default="auto",
        description="A ranked document without a label: gain 0 (`zero`), taken out before the cut at k (`condense`) "
        "or after it (`cut_then_condense`, nothing moves up from below k). `auto` is `zero` for human judgments "
        "and `cut_then_condense` for labels from behaviour.",
    )
    ties: Literal["doc_id_desc", "doc_id_asc", "error"] = Field(
        default="doc_id_desc", description="Documents at equal score or rank: by doc_id, or the run stops."
    )
    duplicates: Literal["best", "error"] = Field(
        default="best", description="The same document twice in a list: its best place is kept, or the run stops."
    )
    order: Literal["rank", "score", "score_float32"] = Field(
        default="rank",
        description="What orders a list: rank where given and score otherwise, or score alone, at full precision "
        "or as 32-bit floats, as trec_eval compares them.",
    )
    rel: float | None = Field(
        default=None, description="The smallest grade that counts as relevant; anything above 0 where not set."
    )
    max_grade: float | None = Field(
        default=None,
        gt=0,
        description="Top of the label scale, for err and graded rbp; the largest label where not set.",
    )
