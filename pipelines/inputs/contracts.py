"""The contracts of the inputs, with the columns that a configuration adds to them."""

from __future__ import annotations

from dataclasses import replace

from pipelines.config.model import Config
from schemas.inputs import INPUTS
from schemas.table import Column, Table


def resolve_contract(name: str, config: Config) -> Table:
    """The contract of an input, with the columns that this configuration adds to it."""
    table = INPUTS[name]
    if name == "rankings":
        return _resolve_rankings(table, config)
    if name == "judgments" and config.statistics.label_draws and not config.behaviour:
        deviation = Column("grade_sd", "double", "standard deviation of the grade", nullable=True, minimum=0)
        return table.add_columns([deviation])
    if name == "impressions":
        contexts = dict.fromkeys([*config.labels.contexts, *config.page_columns])
        return table.add_columns(Column(context, "string", "a context", nullable=True) for context in contexts)
    segments = config.query_columns if name == "queries" else ()
    return table.add_columns(Column(segment, "string", "a segment", nullable=True) for segment in segments)


def _resolve_rankings(table: Table, config: Config) -> Table:
    """The contract of rankings, whose lists may differ by the columns of the log that segments use."""
    if config.conventions.order != "rank":  # a row needs a score then, and its rank is ignored
        columns = tuple(replace(c, optional=c.optional and c.name != "score") for c in table.columns)
        table = replace(table, columns=columns, unread=("rank",))
    pages = [Column(name, "string", "where the list was shown", optional=True) for name in config.page_columns]
    return replace(table.add_columns(pages), key=(*table.key, *config.page_columns)) if pages else table
