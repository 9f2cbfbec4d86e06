"""`msmarco`: the files of MS MARCO, with fields between tabs and no header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.format_registry import register_preset
from pipelines.inputs.formats.beir import shorten_title
from pipelines.inputs.formats.trec import name_by_file, read_qrels

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def read_msmarco_run(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `query document rank`, and ignore further fields; the file names the system."""
    from pyspark.sql import functions as F

    from schemas.conform import SOURCE_FILE

    columns = {"query_id": _field(0), "doc_id": _field(1), "rank": _field(2)}
    files = {"system": name_by_file(F.col("_metadata.file_name")), SOURCE_FILE: F.col("_metadata.file_path")}
    return _read_fields(spark, paths, options, columns, at_least=3, files=files)


def read_msmarco_queries(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `query text`."""
    return _read_fields(spark, paths, options, {"query_id": _field(0), "query": _field(1)}, at_least=2)


def read_msmarco_corpus(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `passage text`, or `document url title text`; the beginning of a passage stands for its title."""
    from pyspark.sql import functions as F

    text = F.when(F.size("fields") >= 4, _field(3)).otherwise(_field(1))
    title = F.when(F.size("fields") >= 4, _field(2))
    columns = {"doc_id": _field(0), "title": shorten_title(title, text)}
    return _read_fields(spark, paths, options, columns, at_least=2)


def _field(at: int) -> Column:
    from pyspark.sql import functions as F

    return F.get("fields", F.lit(at))


def _read_fields(
    spark: SparkSession,
    paths: Sequence[str],
    options: Mapping[str, str],
    columns: Mapping[str, Column],
    *,
    at_least: int,
    files: Mapping[str, Column] | None = None,
) -> DataFrame:
    """Read columns of the `fields` of each line; a line with fewer than `at_least` is corrupt."""
    from pyspark.sql import functions as F

    from schemas.compute_once import select_once
    from schemas.conform import CORRUPT

    origin = dict(files or {})
    lines = spark.read.options(**options).text(list(paths))
    named = [file.alias(name) for name, file in origin.items()]
    rows = lines.select("value", F.split("value", "\t").alias("fields"), *named)
    whole = F.size("fields") >= at_least
    parsed = {name: F.when(whole, value) for name, value in columns.items()} | {name: F.col(name) for name in origin}
    return select_once(rows, parsed | {CORRUPT: F.when(~whole, F.col("value"))}, where=F.trim("value") != "")


register_preset(
    "msmarco",
    {
        "rankings": read_msmarco_run,
        "judgments": read_qrels,
        "queries": read_msmarco_queries,
        "documents": read_msmarco_corpus,
    },
    {},
)
