"""Means of the query metrics by segment, in one pass for all segments and metrics."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.outputs import SEGMENT_METRICS
from udfs.registry import Spec

EVERYTHING = "all"
NO_VALUE = "(none)"  # what a query without a value in a segment's column is filed under
BETWEEN = " / "  # between the parts of a combined segment's name and value


def aggregate(query_metrics: DataFrame, *, segments: Sequence[Sequence[str]], specs: Sequence[Spec]) -> DataFrame:
    """One row per system, segment and metric; a query where the metric is undefined is skipped, and counted."""
    pieces = [_piece(EVERYTHING, F.lit(EVERYTHING))]
    for columns in segments:
        values = F.concat_ws(BETWEEN, *[F.coalesce(F.col(column), F.lit(NO_VALUE)) for column in columns])
        pieces.append(_piece(BETWEEN.join(columns), values))
    cut = query_metrics.select(
        "system", "weight", *[spec.key for spec in specs], F.explode(F.array(*pieces)).alias("of")
    )
    sums = [statistic for spec in specs for statistic in _statistics(spec.key)]
    by_segment = cut.groupBy("system", "of").agg(*sums)
    rows = [
        F.struct(
            F.lit(spec.key).alias("metric"),
            *[
                F.col(f"{spec.key}:{name}").alias(name)
                for name in ("macro", "weighted", "stddev", "queries", "skipped")
            ],
        )
        for spec in specs
    ]
    unfolded = by_segment.select("system", "of.segment", "of.value", F.explode(F.array(*rows)).alias("row"))
    return unfolded.select("system", "segment", "value", "row.*").select(*SEGMENT_METRICS.names)


def _piece(segment: str, value: Column) -> Column:
    return F.struct(F.lit(segment).alias("segment"), value.alias("value"))


def _statistics(key: str) -> list[Column]:
    value, weight = F.col(key), F.when(F.col(key).isNotNull(), F.col("weight"))
    return [
        F.mean(value).alias(f"{key}:macro"),
        (F.sum(value * weight) / F.nullif(F.sum(weight), F.lit(0.0))).alias(f"{key}:weighted"),
        F.stddev(value).alias(f"{key}:stddev"),
        F.count(value).alias(f"{key}:queries"),
        F.count_if(value.isNull()).alias(f"{key}:skipped"),
    ]
