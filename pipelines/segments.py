"""What queries are cut by: bands made from the results, and a bound on how many values a segment may have."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.config_statistics import RELEVANT_BAND, TRAFFIC_BAND, Bands
from schemas.errors import DataQualityError
from udfs.statistics.plan import BETWEEN

OTHER = "(other)"


def with_bands(query_metrics: DataFrame, *, bands: Bands, wanted: Sequence[str]) -> DataFrame:
    """The query metrics with the bands that some segment is cut by."""
    banded = query_metrics
    if RELEVANT_BAND in wanted:
        banded = banded.withColumn(RELEVANT_BAND, _relevant_band(bands.relevant))
    if TRAFFIC_BAND in wanted:
        banded = _traffic_band(banded, *bands.traffic)
    return banded


def _relevant_band(cuts: Sequence[int]) -> Column:
    """0, then a band up to each cut, then the rest: 0, 1, 2-5, 6+."""
    band = F.when(F.col("relevant") == 0, F.lit("0"))
    low = 1
    for cut in cuts:
        band = band.when(F.col("relevant") <= cut, F.lit(str(cut) if low == cut else f"{low}-{cut}"))
        low = cut + 1
    return band.otherwise(F.lit(f"{low}+"))


def _traffic_band(rows: DataFrame, head: float, torso: float) -> DataFrame:
    """Head, torso and tail by share of all traffic, busiest queries first.

    Queries of equal weight, to three digits, share a band, so that the answer is one whatever the order, and
    only a few thousand weights have to be ordered, however many queries there are.
    """
    weight = F.col("weight")
    digits = F.pow(F.lit(10.0), F.floor(F.log10(weight)) - 2)
    level = F.when(weight > 0, F.round(weight / digits) * digits).otherwise(F.lit(0.0))
    levels = rows.groupBy(level.alias("level")).agg(F.sum("weight").alias("traffic"))
    busiest = Window.orderBy(F.desc("level"))
    before = F.sum("traffic").over(busiest) - F.col("traffic")
    total = F.sum("traffic").over(Window.partitionBy())
    share = before / F.nullif(total, F.lit(0.0))
    ends = levels.select("level", share.alias("share")).agg(
        F.min(F.when(F.col("share") < head, F.col("level"))).alias("_head"),
        F.min(F.when(F.col("share") < torso, F.col("level"))).alias("_torso"),
    )
    band = F.when(level >= F.col("_head"), "head").when(level >= F.col("_torso"), "torso").otherwise("tail")
    return rows.crossJoin(F.broadcast(ends)).withColumn(TRAFFIC_BAND, band).drop("_head", "_torso")


def bounded(rows: DataFrame, *, segments: Sequence[Sequence[str]], most: int, many: str) -> DataFrame:
    """The rows with no segment of more than `most` values, or a refusal.

    A single column with too many values keeps its largest ones; the others become `(other)`.
    """
    if not segments:
        return rows
    counted = [
        F.approx_count_distinct(F.concat_ws(BETWEEN, *names)).alias(str(at)) for at, names in enumerate(segments)
    ]
    found = rows.agg(*counted).first()
    assert found is not None
    # The count is approximate, to 5 %: a segment is over the bound when it is so beyond doubt.
    over = {BETWEEN.join(names): found[at] for at, names in enumerate(segments) if found[at] > 1.1 * most}
    if not over:
        return rows
    first, values = next(iter(over.items()))
    combined = [name for name in over if BETWEEN in name]
    if many == "refuse":
        raise DataQualityError(
            f"the segment {first!r} has about {values:,} values, more than statistics.max_values = {most:,}",
            hint="choose a coarser column, raise statistics.max_values, or set statistics.many_values: other",
        )
    for name in (name for name in over if name not in combined):
        largest = (
            rows.groupBy(name)
            .count()
            .orderBy(F.desc("count"), name)
            .limit(most)
            .select(name, F.lit(True).alias("_keep"))
        )
        rows = rows.join(F.broadcast(largest), name, "left")
        kept = F.when(F.col("_keep") | F.col(name).isNull(), F.col(name)).otherwise(F.lit(OTHER))
        rows = rows.withColumn(name, kept).drop("_keep")
    if combined:
        raise DataQualityError(
            f"the combined segment {combined[0]!r} has about {over[combined[0]]:,} values, more than "
            f"statistics.max_values = {most:,}",
            hint="combine coarser columns, or raise statistics.max_values",
        )
    return rows
