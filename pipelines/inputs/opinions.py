"""The columns of `opinions`: those that the configuration names, or all beside the key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import types as T

from schemas.conform import READER_COLUMNS
from schemas.errors import InputError, did_you_mean
from schemas.table import Column, Table

_WHERE = "labels.opinions"
_MEANING = "an opinion of how relevant the document is to the query"


def add_opinion_columns(
    table: Table, schema: T.StructType, renamed: Mapping[str, str], configured: Sequence[str] | None
) -> Table:
    """The contract of `opinions` with the `configured` columns, or with every column of the data beside the key.

    `renamed` maps names of the contract to names in the data. Numbers are read as numbers, all else as text.
    """
    names = {source: name for name, source in renamed.items()}
    kinds = {names.get(field.name, field.name): field.dataType for field in schema if field.name not in READER_COLUMNS}
    others = {name: kind for name, kind in kinds.items() if name not in table.names}
    if not others:
        raise InputError(
            "opinions has no column beside its key", where="inputs.opinions", hint="add a column per opinion"
        )
    chosen = list(others) if configured is None else list(configured)
    return table.add_columns(_declare_column(name, others) for name in chosen)


def _declare_column(name: str, others: Mapping[str, T.DataType]) -> Column:
    if name not in others:
        raise InputError(f"opinions has no column {name!r}", where=_WHERE, hint=did_you_mean(name, others))
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise InputError(
            f"the opinion {name!r} is not a name of letters, digits and underscores",
            where=_WHERE,
            hint="rename it with inputs.opinions.columns, or name the columns to use in labels.opinions",
        )
    kind = others[name]
    if isinstance(kind, T.NumericType):
        return Column(name, "double", _MEANING, nullable=True)
    if isinstance(kind, T.StringType | T.BooleanType | T.NullType):
        return Column(name, "string", _MEANING, nullable=True)
    raise InputError(
        f"the opinion {name!r} is {kind.simpleString()}, neither a number nor text",
        where=_WHERE,
        hint="name the columns to use in labels.opinions",
    )
