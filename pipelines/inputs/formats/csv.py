"""CSV files with a header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.format_registry import source_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@source_format("csv")
def read_csv(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read every column as text, to be cast by the contract; RFC 4180 quoting.

    Files with different headers are an error: Spark would match their columns by position.
    """
    from pyspark.sql import types as T

    from schemas.conform import CORRUPT

    settings = {
        "header": "true",
        "escape": '"',  # RFC 4180 doubles the quote; Spark's own default is a backslash
        "enforceSchema": "false",
        "columnPruning": "false",  # otherwise a line with too few fields goes unnoticed
        "mode": "PERMISSIVE",
        **options,
    }
    header = spark.read.options(**settings).csv(list(paths)).schema
    fields = [T.StructField(field.name, T.StringType()) for field in header]
    schema = T.StructType([*fields, T.StructField(CORRUPT, T.StringType())])
    return spark.read.options(**settings, columnNameOfCorruptRecord=CORRUPT).schema(schema).csv(list(paths))
