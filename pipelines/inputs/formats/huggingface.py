"""Parquet of data sets on the Hugging Face Hub: judgments, queries and documents under the names used there.

Ids are numbers or text, names have hyphens (`query-id`, `corpus-id`), labels are scores or the letters of ESCI, and the
passages of a query are a struct of parallel lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.foreign import derive_id, normalise_query
from pipelines.inputs.format_registry import FORMATS, register_preset
from schemas.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pipelines.inputs.format_registry import Reader

QUERY = ("query-id", "query_id", "qid", "_id", "id")
DOCUMENT = ("corpus-id", "corpus_id", "doc_id", "docid", "product_id", "passage_id", "pid", "_id", "id")
# By table: contract column -> the names that it has in data sets, the first of which is taken.
NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "judgments": {
        "query_id": (*QUERY[:3], "query"),
        "doc_id": DOCUMENT[:-2],
        "grade": ("score", "esci_label", "relevance", "label", "grade"),
    },
    "queries": {"query_id": QUERY, "query": ("text", "query")},
    "documents": {"doc_id": DOCUMENT, "title": ("title", "product_title")},
}
REQUIRED = ("query_id", "doc_id", "grade")
ESCI = {"e": 3.0, "s": 2.0, "c": 1.0, "i": 0.0}  # exact, substitute, complement, irrelevant


def _build_reader(table: str) -> Reader:
    def read(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
        raw = FORMATS["parquet"].find_reader(table)(spark, paths, {})
        return _list_passages(raw) if table == "judgments" and "passages" in raw.columns else _rename(raw, table)

    return read


def _rename(raw: DataFrame, table: str) -> DataFrame:
    """The columns of the contract, found by their usual names."""
    from pyspark.sql import functions as F

    columns = {}
    for column, usual in NAMES[table].items():
        name = next((name for name in usual if name in raw.columns), None)
        if name is None and column in REQUIRED:
            raise InputError(
                f"{table} has none of {', '.join(usual)} for {column}",
                where=f"inputs.{table}",
                hint=f"read it with format: parquet and inputs.{table}.columns; it has {', '.join(raw.columns)}",
            )
        if name is not None:
            value = F.col(f"`{name}`").cast("string")
            columns[column] = normalise_query(value) if (column, name) == ("query_id", "query") else value
    if "grade" in columns:
        columns["grade"] = _read_grade(columns["grade"])
    return raw.select(*[value.alias(name) for name, value in columns.items()])


def _read_grade(label: Column) -> Column:
    from pyspark.sql import functions as F

    letter = F.lower(F.substring(label, 1, 1))
    letters = [F.when(letter == name, grade) for name, grade in ESCI.items()]
    return F.coalesce(label.try_cast("double"), *letters)


def _list_passages(raw: DataFrame) -> DataFrame:
    """One judgment per passage of a query; a passage has no id but its text."""
    from pyspark.sql import functions as F

    passages, item = F.col("passages"), F.col("passage")
    zipped = F.arrays_zip(passages["passage_text"].alias("text"), passages["is_selected"].alias("grade"))
    query = F.col("query_id").cast("string") if "query_id" in raw.columns else normalise_query(F.col("query"))
    return raw.select(query.alias("query_id"), F.explode(zipped).alias("passage")).select(
        "query_id", derive_id([item["text"]]).alias("doc_id"), item["grade"].cast("double").alias("grade")
    )


register_preset("huggingface", {table: _build_reader(table) for table in NAMES}, {})
