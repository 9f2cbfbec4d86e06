"""The metrics as functions for anybody's own Spark code and SQL, over array columns.

    register(spark)
    spark.sql("SELECT ndcg(ranked, labels, 10), metric('rbp(p=0.9)', ranked, labels) FROM lists")
    lists.select(metric("ndcg(gain=linear)@10", "ranked", "labels"))

`ranked` is an array of document ids, best first; `labels` a map from document id to grade.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from udfs.block import Block
from udfs.conventions import Conventions
from udfs.lists import assemble
from udfs.match import match
from udfs.ragged import Ints, Ragged
from udfs.registry import metrics, parse
from udfs.score import score

if TYPE_CHECKING:
    from pyspark.sql._typing import UserDefinedFunctionLike

CONVENTIONS = Conventions()


def metric(name: str, ranked: str | Column, labels: str | Column, conventions: Conventions = CONVENTIONS) -> Column:
    """The metric written as `name` for each row; null where it is undefined."""
    spec = parse(name)  # a mistake is told here, not by a worker

    def compute(ranked: pa.Array, labels: pa.Array) -> pa.Array:
        return _values(spec.name, ranked, labels, conventions)

    return _udf(compute)(ranked, labels)


def register(spark: SparkSession, conventions: Conventions = CONVENTIONS) -> list[str]:
    """Make every metric of one list a SQL function `name(ranked, labels, k)`, and `metric(text, ranked, labels)`.

    A k of null means no cut-off. A metric whose name is a function of Spark itself gets `metric_` before it
    (`map` is `metric_map`): a function that is registered hides Spark's own in the whole session.
    The names of the functions are returned.
    """
    taken = {row["function"] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    listed = [name for name, found in metrics().items() if found.scope == "list" and not found.needs]
    names = {name: f"metric_{name}" if name in taken else name for name in listed}
    for name, function in names.items():
        spark.udf.register(function, _udf(_at(name, conventions)))

    def by_text(text: pa.Array, ranked: pa.Array, labels: pa.Array) -> pa.Array:
        return _grouped(text, lambda written: str(written), ranked, labels, conventions)

    spark.udf.register("metric", _udf(by_text))
    return [*names.values(), "metric"]


def _udf(compute: Callable[..., pa.Array]) -> UserDefinedFunctionLike:
    """`compute` as a function of Spark, which knows its kind by its type hints."""
    # Spark's declarations ask for the kind to be named, and Spark itself warns where it is.
    made: UserDefinedFunctionLike = arrow_udf(compute, "double")  # type: ignore[call-overload]
    return made


def _at(name: str, conventions: Conventions) -> Callable[[pa.Array, pa.Array, pa.Array], pa.Array]:
    """The function that computes the metric `name` at the k of each row."""

    def compute(ranked: pa.Array, labels: pa.Array, k: pa.Array) -> pa.Array:
        return _grouped(k, lambda cut: name if cut is None else f"{name}@{cut}", ranked, labels, conventions)

    return compute


def _grouped(
    by: pa.Array, written: Callable[[object], str], ranked: pa.Array, labels: pa.Array, conventions: Conventions
) -> pa.Array:
    """Each row by its own metric; the rows of one metric together, which are mostly all."""
    distinct = by.unique().to_pylist()
    if len(distinct) == 1:
        return _values(written(distinct[0]), ranked, labels, conventions)
    result = np.full(len(by), np.nan)
    for value in distinct:
        mask = pc.is_null(by) if value is None else pc.fill_null(pc.equal(by, value), False)
        part = _values(written(value), ranked.filter(mask), labels.filter(mask), conventions)
        result[mask.to_numpy(zero_copy_only=False)] = part.to_numpy(zero_copy_only=False)
    return pa.array(result, from_pandas=True)


def _values(name: str, ranked: pa.Array, labels: pa.Array, conventions: Conventions) -> pa.Array:
    spec = parse(name)
    return pa.array(score(_block(ranked, labels), [spec], conventions)[spec.key], from_pandas=True)


def _block(ranked: pa.Array, labels: pa.Array) -> Block:
    lists, items = _flat(ranked.cast(pa.list_(pa.string())))
    labelled, entries = _flat(labels.cast(pa.map_(pa.string(), pa.float64())).cast(_ENTRIES))
    keys, grades = entries.flatten() if len(entries) else (pa.array([], pa.string()), pa.array([], pa.float64()))
    codes = pc.dictionary_encode(pa.concat_arrays([items, keys]), null_encoding="encode").indices.to_numpy()
    doc, label_doc = np.split(codes.astype(np.int64), [len(items)])
    grade = grades.to_numpy(zero_copy_only=False).astype(np.float64)
    held = ~np.isnan(grade)  # a label of null is none
    labelled, label_doc, grade = labelled.keep(held), label_doc[held], grade[held]
    block, _ = assemble(lists, doc, match(lists, doc, labelled, label_doc, grade), labelled, grade)
    return block


_ENTRIES = pa.list_(pa.struct([("key", pa.string()), ("value", pa.float64())]))


def _flat(lists: pa.Array) -> tuple[Ragged, pa.Array]:
    """The borders of the lists, a null one empty, and all their elements."""
    lengths: Ints = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    return Ragged.of_lengths(lengths), lists.flatten()
