"""The metrics as functions for Spark SQL and DataFrames, over array columns.

    assay.register_functions(spark)
    spark.sql("SELECT ndcg(ranked, labels, 10), metric('rbp(p=0.9)', ranked, labels) FROM lists")
    lists.select(assay.compute_metric("ndcg(gain=linear)@10", "ranked", "labels"))

`ranked` is an array of document ids, best first; `labels` a map from document id to grade.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from udfs.block import Block
from udfs.compute import compute_metrics
from udfs.conventions import Conventions, read_conventions
from udfs.lists import build_block
from udfs.match import match_labels, take_grades
from udfs.ragged import Ints, Ragged
from udfs.registry import METRICS, parse_metric

if TYPE_CHECKING:
    from pyspark.sql._typing import UserDefinedFunctionLike

CONVENTIONS = Conventions()


def compute_metric(
    name: str, ranked: str | Column, labels: str | Column, conventions: Conventions | Mapping[str, Any] = CONVENTIONS
) -> Column:
    """The metric `name` of each row; null where it is undefined."""
    spec = parse_metric(name)  # an unknown metric is reported here, not by a worker
    rules = read_conventions(conventions)
    _compute_column(spec.name, _NO_LISTS, _NO_LABELS, rules)  # so is a parameter that is missing

    def compute(ranked: pa.Array, labels: pa.Array) -> pa.Array:
        return _compute_column(spec.name, ranked, labels, rules)

    return _build_udf(compute)(ranked, labels)


def register_functions(spark: SparkSession, conventions: Conventions | Mapping[str, Any] = CONVENTIONS) -> list[str]:
    """Register every metric of one list as `name(ranked, labels, k)`, and `metric(text, ranked, labels)`.

    A null k means no cut-off. A metric with the name of a built-in function gets the prefix `metric_` (`map` is
    `metric_map`), since a registered function hides the built-in one in the whole session. Returns the names.
    """
    rules = read_conventions(conventions)
    taken = {row["function"] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    listed = [name for name, metric in METRICS.items() if metric.scope == "list" and not metric.needs]
    names = {name: f"metric_{name}" if name in taken else name for name in listed}
    for name, function in names.items():
        spark.udf.register(function, _build_udf(_compute_at(name, rules)))

    def by_text(text: pa.Array, ranked: pa.Array, labels: pa.Array) -> pa.Array:
        return _compute_grouped(text, lambda written: str(written), ranked, labels, rules)

    spark.udf.register("metric", _build_udf(by_text))
    return [*names.values(), "metric"]


def _build_udf(compute: Callable[..., pa.Array]) -> UserDefinedFunctionLike:
    """`compute` as a UDF, whose kind Spark infers from its type hints."""
    # Spark's stubs require a function type, and Spark itself warns where one is passed.
    udf: UserDefinedFunctionLike = arrow_udf(compute, "double")  # type: ignore[call-overload]
    return udf


def _compute_at(name: str, conventions: Conventions) -> Callable[[pa.Array, pa.Array, pa.Array], pa.Array]:
    """The function that computes `name` at the k of each row."""

    def compute(ranked: pa.Array, labels: pa.Array, k: pa.Array) -> pa.Array:
        return _compute_grouped(k, lambda cut: name if cut is None else f"{name}@{cut}", ranked, labels, conventions)

    return compute


def _compute_grouped(
    by: pa.Array, written: Callable[[object], str], ranked: pa.Array, labels: pa.Array, conventions: Conventions
) -> pa.Array:
    """Compute each row's own metric, all rows of one metric at once."""
    distinct = by.unique().to_pylist()
    if len(distinct) == 1:
        return _compute_column(written(distinct[0]), ranked, labels, conventions)
    result = np.full(len(by), np.nan)
    for value in distinct:
        mask = pc.is_null(by) if value is None else pc.fill_null(pc.equal(by, value), False)
        part = _compute_column(written(value), ranked.filter(mask), labels.filter(mask), conventions)
        result[mask.to_numpy(zero_copy_only=False)] = part.to_numpy(zero_copy_only=False)
    return pa.array(result, from_pandas=True)


def _compute_column(name: str, ranked: pa.Array, labels: pa.Array, conventions: Conventions) -> pa.Array:
    spec = parse_metric(name)
    return pa.array(compute_metrics(_build_block(ranked, labels), [spec], conventions)[spec.key], from_pandas=True)


def _build_block(ranked: pa.Array, labels: pa.Array) -> Block:
    lists, items = _flatten(ranked.cast(pa.list_(pa.string())))
    labelled, entries = _flatten(labels.cast(pa.map_(pa.string(), pa.float64())).cast(_ENTRIES))
    keys, grades = entries.flatten() if len(entries) else (pa.array([], pa.string()), pa.array([], pa.float64()))
    codes = pc.dictionary_encode(pa.concat_arrays([items, keys]), null_encoding="encode").indices.to_numpy()
    doc, label_doc = np.split(codes.astype(np.int64), [len(items)])
    grade = grades.to_numpy(zero_copy_only=False).astype(np.float64)
    graded = ~np.isnan(grade)  # a null grade is no label
    labelled, label_doc, grade = labelled.keep(graded), label_doc[graded], grade[graded]
    matched = take_grades(grade, match_labels(lists, doc, labelled, label_doc))
    block, _ = build_block(lists, doc, matched, labelled, grade)
    return block


_NO_LISTS = pa.array([], pa.list_(pa.string()))
_NO_LABELS = pa.array([], pa.map_(pa.string(), pa.float64()))
_ENTRIES = pa.list_(pa.struct([("key", pa.string()), ("value", pa.float64())]))


def _flatten(lists: pa.Array) -> tuple[Ragged, pa.Array]:
    """The lists as a `Ragged`, null ones empty, and all their elements."""
    lengths: Ints = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    return Ragged.of_lengths(lengths), lists.flatten()
