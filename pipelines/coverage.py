"""Metrics of everything that a system showed, rather than of single lists."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipelines.aggregate import EVERYTHING
from pipelines.order import order
from schemas.outputs import SEGMENT_METRICS
from udfs.conventions import Conventions
from udfs.registry import Spec


def coverage(
    rankings: DataFrame, documents: DataFrame, *, specs: Sequence[Spec], conventions: Conventions
) -> DataFrame:
    """One row per system and `catalog_coverage@k`: the share of the catalogue in the top k of any list."""
    again = Window.partitionBy("query_id", "system", "doc_id").orderBy("rank")
    places = Window.partitionBy("query_id", "system").orderBy("rank")
    shown = (
        order(rankings, conventions)
        .withColumn("again", F.row_number().over(again))
        .where("again = 1")
        .withColumn("rank", F.row_number().over(places))
        .groupBy("system", "doc_id")
        .agg(F.min("rank").alias("rank"))
        .join(documents.select("doc_id").distinct(), "doc_id", "left_semi")
    )
    catalogue = documents.agg(F.count_distinct("doc_id").alias("catalogue"))
    queries = rankings.groupBy("system").agg(F.count_distinct("query_id").alias("queries"))
    tops = [F.count_if(F.col("rank") <= F.lit(spec.k)).alias(spec.key) for spec in specs]
    counted = queries.join(shown.groupBy("system").agg(*tops), "system", "left").crossJoin(catalogue)
    rows = [_row(counted, spec) for spec in specs]
    return reduce(DataFrame.unionByName, rows).select(*SEGMENT_METRICS.names)


def _row(counted: DataFrame, spec: Spec) -> DataFrame:
    return counted.select(
        "system",
        F.lit(EVERYTHING).alias("segment"),
        F.lit(EVERYTHING).alias("value"),
        F.lit(spec.key).alias("metric"),
        (F.coalesce(spec.key, F.lit(0)) / F.col("catalogue")).alias("macro"),
        F.lit(None).cast("double").alias("weighted"),
        F.lit(None).cast("double").alias("stddev"),
        "queries",
        F.lit(0).cast("bigint").alias("skipped"),
    )
