"""Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.format_registry import source_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@source_format("parquet")
def read_parquet(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read columns as the files have them; files of one folder may differ in their optional columns."""
    return spark.read.options(**{"mergeSchema": "true", **options}).parquet(*paths)
