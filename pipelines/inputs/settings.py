"""Settings of the inputs: where each table is read from."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from pipelines.inputs.format_registry import FORMATS
from schemas.errors import did_you_mean
from schemas.section import Place, Section


def _require_format(name: str) -> str:
    if name not in FORMATS:  # pydantic adds the key to a ValueError only
        raise ValueError(f"unknown format {name!r}: {did_you_mean(name, FORMATS)}")
    return name


def _refuse_foreign_code(condition: str) -> str:
    """Refuse SQL functions that call any method of Java, and names that are only known when the query runs."""
    if not condition.strip():
        raise ValueError("the condition is empty")
    code = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "''", condition)
    called = re.search(r"\b(?:reflect|try_reflect|java_method)\b|\bidentifier\s*(?=\()", code, re.IGNORECASE)
    if called is not None:
        raise ValueError(f"{called[0].strip()} may not be used in a condition: it can run any code")
    return condition


Format = Annotated[str, AfterValidator(_require_format)]


class InputSource(Section):
    """Where one input table is read from."""

    path: Place | None = Field(
        None, description="Folder or file; `{date}` is replaced by the date of the run, or by each date of the window."
    )
    table: Place | None = Field(None, description="A catalog table instead of a path, as `catalog.schema.table`.")
    format: Format = Field("parquet", description=f"Format of the files at `path`: {', '.join(FORMATS)}.")
    columns: dict[str, str] = Field(
        default_factory=dict, description="Contract name → name in the data, where they differ."
    )
    options: dict[str, str] = Field(
        default_factory=dict, description="Options of Spark's reader for this format, e.g. `sep` for CSV."
    )
    days: int = Field(1, ge=1, description="Days in the window that ends with the date of the run.")
    where: Annotated[str, AfterValidator(_refuse_foreign_code)] | None = Field(
        None,
        description="A SQL condition on the data as it is read; `{date}` is replaced by the date of the run. It runs "
        "with the rights of the job, so write it as carefully as code; functions that call Java are refused.",
    )

    @model_validator(mode="after")
    def _require_one_place(self) -> InputSource:
        if (self.path is None) == (self.table is None):
            raise ValueError("give either path or table")
        if self.days > 1 and self.path is not None and "{date}" not in self.path:
            raise ValueError("a window of several days needs {date} in path")
        return self


class Inputs(Section):
    """The tables to read; the table reference has the contract of each."""

    rankings: InputSource | None = Field(
        None, description="The ranked lists to evaluate; without them, the pages of the log are evaluated."
    )
    judgments: InputSource | None = Field(
        None, description="Human labels: the only labels without a log; with one, they override the labels from it."
    )
    opinions: InputSource | None = Field(
        None,
        description="Opinions of documents, such as an LLM's grades or text-match scores; weighed by the clicks of the "
        "log (see `labels.opinions`).",
    )
    impressions: InputSource | None = Field(None, description="The log of shown results, from which labels are built.")
    interactions: InputSource | None = Field(None, description="The log of clicks, carts and purchases.")
    queries: InputSource | None = Field(None, description="The queries, with their weights and segment columns.")
    documents: InputSource | None = Field(None, description="The catalogue, for diversity and novelty metrics.")
    decisions: InputSource | None = Field(None, description="Routing and gating decisions, for routing metrics.")

    @model_validator(mode="after")
    def _require_whole_log(self) -> Inputs:
        if (self.impressions is None) != (self.interactions is None):
            raise ValueError("a log needs both impressions and interactions")
        return self
