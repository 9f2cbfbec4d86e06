"""TREC run and qrels files: white space between fields, no header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.format_registry import source_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@source_format("trec_run")
def read_run(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `query Q0 document rank score tag`; the tag is the system."""
    return _read(spark, paths, options, ("query_id", "", "doc_id", "rank", "score", "system"))


@source_format("trec_qrels")
def read_qrels(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `query iteration document grade`."""
    return _read(spark, paths, options, ("query_id", "", "doc_id", "grade"))


def _read(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], names: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    lines = spark.read.options(**options).text(list(paths)).where(F.trim("value") != "")
    fields = F.split(F.regexp_replace("value", r"^\s+|\s+$", ""), r"\s+")
    whole = F.size(fields) == len(names)
    columns = [F.when(whole, fields[at]).alias(name) for at, name in enumerate(names) if name]
    return lines.select(*columns, F.when(~whole, F.col("value")).alias(CORRUPT))
