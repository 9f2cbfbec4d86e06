"""Score every system's lists against the labels, in one pass.

Both sides are partitioned by query once; the join and the aggregations that follow stay within a
partition. Documents travel as 64-bit hashes, which are only ever compared within one query.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.outputs import QUERY_METRICS
from schemas.table import Column as Declared
from schemas.table import Table
from udfs.arrow import ARRAYS, COUNTS, score_lists
from udfs.conventions import Conventions
from udfs.registry import Spec


def query_metrics_table(segments: Sequence[str], specs: Sequence[Spec]) -> Table:
    """The contract of `query_metrics` for these segments and metrics."""
    cut = [Declared(name, "string", "a segment", nullable=True) for name in segments]
    measured = [Declared(spec.key, "double", spec.metric.summary, nullable=True) for spec in specs]
    return QUERY_METRICS.plus([*cut, *measured])


def order(rankings: DataFrame, conventions: Conventions) -> DataFrame:
    """Give every document its place in its list, from 1 without gaps, and mark those that are tied."""
    score = F.col("score").cast("float") if conventions.order == "score_float32" else F.col("score")
    # Where ranks are given and repeat, as in runs whose ranks are all 0, scores decide before doc_ids do.
    keys = [F.col("rank"), -score] if conventions.order == "rank" else [-score]
    doc = F.asc("doc_id") if conventions.ties == "doc_id_asc" else F.desc("doc_id")
    lists = Window.partitionBy("query_id", "system").orderBy(*[key.asc_nulls_last() for key in keys], doc)
    tied = F.struct(*keys) == F.lag(F.struct(*keys)).over(lists)
    return rankings.repartition("query_id").select(
        "system",
        "query_id",
        F.row_number().over(lists).alias("rank"),
        F.xxhash64("doc_id").alias("doc"),
        tied.alias("tied"),
    )


def score(
    rankings: DataFrame,
    labels: DataFrame,
    queries: DataFrame | None,
    *,
    systems: Sequence[str],
    segments: Sequence[str],
    specs: Sequence[Spec],
    conventions: Conventions,
) -> DataFrame:
    """One row per system and query: every metric, and the counts that say what it rests on.

    Every system gets a row for every query that has labels or stands in `queries`, so that a query for
    which it returned nothing is seen; and one for every other query that it ranked.
    """
    lists = (
        order(rankings, conventions)
        .groupBy("query_id", "system")
        .agg(
            F.collect_list("rank").alias("rank"),
            F.collect_list("doc").alias("doc"),
            F.count_if("tied").cast("int").alias("tied"),
        )
    )
    every = F.explode(F.array(*[F.lit(system) for system in systems])).alias("system")
    asked = _asked(labels, queries, segments).select("*", every)
    joined = asked.join(lists.hint("shuffle_hash"), ["query_id", "system"], "full")
    table = query_metrics_table(segments, specs)
    rows = joined.select(
        "system",
        "query_id",
        F.coalesce("weight", F.lit(1.0)).alias("weight"),
        F.coalesce("tied", F.lit(0)).alias("tied"),
        *segments,
        *[_filled(name) for name in ARRAYS],
    )
    carried = [c for c in table.columns if c.name in ("system", "query_id", "weight", "tied", *segments)]
    counted = [table[name] for name in COUNTS]
    made = Table("scored", table.row, (*carried, *counted, *[table[spec.key] for spec in specs]))
    return rows.mapInArrow(score_lists([spec.name for spec in specs], conventions), made.struct()).select(*table.names)


def _asked(labels: DataFrame, queries: DataFrame | None, segments: Sequence[str]) -> DataFrame:
    """One row per query that is labelled or listed: its weight, its segments and all its labels."""
    labelled = (
        labels.repartition("query_id")
        .groupBy("query_id")
        .agg(
            F.collect_list("grade").alias("label"),
            F.collect_list(F.xxhash64("doc_id")).alias("label_doc"),
        )
    )
    if queries is None:
        return labelled.select("*", F.lit(1.0).alias("weight"))
    # A query listed twice would be counted twice: one row each, and the same one whatever the order.
    once = queries.groupBy("query_id").agg(F.min(F.struct("weight", *segments)).alias("of"))
    return labelled.join(once.select("query_id", "of.*"), "query_id", "full")


def _filled(name: str) -> Column:
    return F.coalesce(name, F.array().cast(ARRAYS[name])).alias(name)
