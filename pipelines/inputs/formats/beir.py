"""`beir`: a BEIR data set, with `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv` in its folder.

`path` is the folder, or one of its files; the option `split` names another file of judgments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.format_registry import FORMATS, register_preset

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MAX_TITLE = 200  # characters of the text that stand for a missing title


def read_beir_qrels(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `query-id corpus-id score`, separated by tabs, with that header."""
    names = {"query-id": "query_id", "corpus-id": "doc_id", "score": "grade"}
    files = _locate(paths, f"qrels/{options.get('split', 'test')}.tsv")
    read_csv = FORMATS["csv"].find_reader("judgments")
    return read_csv(spark, files, {"sep": "\t", "quote": ""}).withColumnsRenamed(names)


def read_beir_queries(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `_id` and `text` of each line."""
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    rows = _read_lines(spark, _locate(paths, "queries.jsonl"))
    return rows.select(F.col("_id").alias("query_id"), F.col("text").alias("query"), CORRUPT)


def read_beir_corpus(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `_id` and `title` of each line; the beginning of `text` where the title is empty."""
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    rows = _read_lines(spark, _locate(paths, "corpus.jsonl"))
    return rows.select(F.col("_id").alias("doc_id"), shorten_title(F.col("title"), F.col("text")), CORRUPT)


def shorten_title(title: Column, text: Column) -> Column:
    """The title, or the beginning of the text where there is none."""
    from pyspark.sql import functions as F

    words = F.when(F.trim(title) != "", title).otherwise(text)
    return F.substring(words, 1, MAX_TITLE).alias("title")


def _locate(paths: Sequence[str], name: str) -> list[str]:
    """The files of this name in folders; a path with an ending is a file already."""
    return [path if re.search(r"\.(jsonl|tsv)(\.\w+)?$", path) else f"{path.rstrip('/')}/{name}" for path in paths]


def _read_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Read JSON lines by a schema: to infer one, Spark would read a whole corpus."""
    from schemas.conform import CORRUPT

    settings = {"columnNameOfCorruptRecord": CORRUPT, "mode": "PERMISSIVE"}
    schema = f"_id string, title string, text string, {CORRUPT} string"
    return spark.read.options(**settings).schema(schema).json(list(paths))


register_preset(
    "beir",
    {"judgments": read_beir_qrels, "queries": read_beir_queries, "documents": read_beir_corpus},
    {"split": r"[\w-]+"},
)
