"""UBI as CSV: each row becomes the document that it was exported from.

A column has the name of a field, or its path (`event_attributes.object.object_id`, also after `_source.`); the value of
an object or a list is JSON. Searches and events are usually two files with different columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pipelines.inputs.format_registry import FORMATS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import types as T


def read_csv_documents(
    spark: SparkSession, paths: Sequence[str], settings: Mapping[str, str], document: T.StructType
) -> DataFrame:
    """The rows of CSV files as JSON text in the column `value`, each path with a header of its own."""
    read = FORMATS["csv"].find_reader("impressions")
    return reduce(
        lambda one, other: one.unionAll(other),
        [_write_documents(read(spark, [path], settings), document) for path in paths],
    )


def _write_documents(rows: DataFrame, document: T.StructType) -> DataFrame:
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    fields = _list_fields(rows.columns, document, "") or [F.col(f"`{name}`") for name in rows.columns]
    text = F.to_json(F.struct(*fields))
    return rows.select(F.coalesce(F.col(CORRUPT), text).alias("value"))


def _list_fields(columns: Collection[str], document: T.StructType, path: str) -> list[Column]:
    """The fields of a document that the columns have."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    fields = []
    for field in document:
        kind, name = field.dataType, f"{path}{field.name}"
        column = next((column for column in (name, f"_source.{name}") if column in columns), None)
        inner = _list_fields(columns, kind, f"{name}.") if isinstance(kind, T.StructType) and column is None else []
        if column is not None:
            fields.append(_parse_value(F.col(f"`{column}`"), kind).alias(field.name))
        elif inner:
            fields.append(F.struct(*inner).alias(field.name))
    return fields


def _parse_value(text: Column, kind: T.DataType) -> Column:
    """Text as it is; an object from JSON; a list from JSON, or else of what is between commas."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(kind, T.StringType):
        return text
    value = F.from_json(text, kind.simpleString())
    if not isinstance(kind, T.ArrayType):
        return value
    return F.coalesce(value, F.when(~F.trim(text).startswith("["), F.split(text, r"\s*,\s*")))
