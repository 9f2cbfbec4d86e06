"""Settings of the inputs: where each table is read from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipelines.inputs.format_registry import FORMATS
from schemas.errors import did_you_mean
from schemas.section import Place, Section
from schemas.sql import check_expression, check_query, refuse_foreign_code, write_value_map


def _require_format(name: str) -> str:
    if name not in FORMATS:  # pydantic adds the key to a ValueError only
        raise ValueError(f"unknown format {name!r}: {did_you_mean(name, FORMATS)}")
    return name


def _write_expression(value: Any) -> Any:
    """A number as SQL, and a mapping of values as the expression that applies it."""
    if isinstance(value, Mapping):
        mapping = ValueMap.model_validate(value)
        return write_value_map(mapping.source, mapping.values)
    return str(value).lower() if isinstance(value, int | float) else value


Format = Annotated[str, AfterValidator(_require_format)]


Expression = Annotated[str, AfterValidator(check_expression)]
PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")  # in a view: the name of a source, or the date


class ValueMap(Section):
    """A column whose values are replaced; those that are not listed are kept."""

    source: Expression = Field(alias="from")
    values: dict[str, str] = Field(min_length=1)


ColumnExpression = Annotated[str, BeforeValidator(_write_expression), AfterValidator(check_expression)]


class RawSource(Section):
    """Where raw rows are read from."""

    path: Place | tuple[Place, ...] | None = Field(
        None,
        description="Folder or file, or a list of them; `{date}` is replaced by the date of the run, or by each date "
        "of the window.",
    )
    table: Place | None = Field(None, description="A catalog table instead of a path, as `catalog.schema.table`.")
    format: Format = Field("parquet", description=f"Format of the files at `path`: {', '.join(FORMATS)}.")
    options: dict[str, str] = Field(
        default_factory=dict,
        description="Options of the format: those of Spark's reader, e.g. `sep` for CSV, or of a preset.",
    )
    days: int = Field(1, ge=1, description="Days in the window that ends with the date of the run.")
    where: Annotated[str, AfterValidator(refuse_foreign_code)] | None = Field(
        None,
        description="A SQL condition on the data as it is read; `{date}` is replaced by the date of the run. It runs "
        "with the rights of the job, so write it as carefully as code; functions that call Java are refused.",
    )

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, none where a table or a view is read."""
        return (self.path,) if isinstance(self.path, str) else self.path or ()

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if [self.path or None, self.table, getattr(self, "view", None)].count(None) != 2:
            raise ValueError("give either path or table" + (", or a view" if "view" in type(self).model_fields else ""))
        FORMATS[self.format].check_options(self.options)
        if self.days > 1 and self.path is not None and not all("{date}" in path for path in self.paths):
            raise ValueError("a window of several days needs {date} in path")
        return self


class InputSource(RawSource):
    """Where one input table is read from, and how its rows are shaped."""

    view: Annotated[str, AfterValidator(check_query)] | None = Field(
        None,
        description="A Spark SQL query instead of a path; `{name}` stands for a table of `sources`, `{date}` for the "
        "date of the run.",
    )
    sources: dict[str, RawSource] = Field(
        default_factory=dict, description="What `view` reads, by name; each has a path or a table, as an input has."
    )
    explode: Expression | None = Field(
        None,
        description="An array, or a SQL expression of one, that becomes one row per element; `item` is the element and "
        "`pos` its index, from 0, in `columns` and `where`. An empty or missing array gives no row.",
    )
    columns: dict[str, ColumnExpression] = Field(
        default_factory=dict,
        description="Contract name → name in the data, or a SQL expression over its columns, such as `item.id` or "
        "`timestamp_millis(time)`; `{from: action, values: {add_to_cart: cart}}` replaces values.",
    )

    @property
    def is_plain(self) -> bool:
        """Whether it is Parquet files whose rows are read as they are, but for names and expressions of `columns`."""
        shaped = self.table or self.view or self.where or self.explode or self.options
        return self.format == "parquet" and not shaped

    @model_validator(mode="after")
    def _check_view(self) -> Self:
        names = set(PLACEHOLDER.findall(self.view or "")) - {"date"}
        unknown = next(iter(sorted(names - set(self.sources))), None)
        if unknown is not None:
            raise ValueError(f"view reads {{{unknown}}}, which sources lacks: {did_you_mean(unknown, self.sources)}")
        unused = next(iter(sorted(set(self.sources) - names)), None)
        if unused is not None:
            raise ValueError(f"sources.{unused} is not used: write {{{unused}}} in view")
        for name, source in self.sources.items():
            FORMATS[source.format].find_reader(f"a source of a view, such as {name}")
        if self.view is not None and not names:
            raise ValueError("view reads no source: name its tables in sources, and write {name} for them")
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
    def _check_formats(self) -> Inputs:
        for name in type(self).model_fields:
            source = getattr(self, name)
            if source is not None:
                FORMATS[source.format].find_reader(name)
        return self

    @model_validator(mode="after")
    def _require_whole_log(self) -> Inputs:
        if (self.impressions is None) != (self.interactions is None):
            raise ValueError("a log needs both impressions and interactions")
        return self
