"""JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.format_registry import source_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@source_format("json")
def read_json(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read one object per line. Numbers are read as text, so that no digit of an id is lost."""
    from schemas.conform import CORRUPT

    settings = {"primitivesAsString": "true", "columnNameOfCorruptRecord": CORRUPT, "mode": "PERMISSIVE", **options}
    return spark.read.options(**settings).json(list(paths))
