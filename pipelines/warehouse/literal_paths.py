"""Paths for Spark, which takes a path to read for a pattern and a path in SQL for a literal with escapes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

NO_PATTERN = {"__globPaths__": "false"}  # the option of Spark's file sources to take paths as they are


def open_reader(spark: SparkSession, **options: str) -> DataFrameReader:
    """Return a reader that takes paths as they are, with brackets, stars and backslashes."""
    return spark.read.options(**NO_PATTERN, **options)


def escape_pattern(path: str) -> str:
    """Escape a path to be part of a pattern."""
    return re.sub(r"[\[\]{}*?\\,]", lambda match: f"\\{match[0]}", path)


def quote_sql(text: str) -> str:
    """Return text as a literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
