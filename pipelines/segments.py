"""What queries are cut by: bands made from the results, and a bound on how many values a segment may have."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.config_statistics import RELEVANT_BAND, TRAFFIC_BAND, Bands
from schemas.errors import DataQualityError
from udfs.statistics.plan import BETWEEN

OTHER = "(other)"
_ROUNDING = 1e-9  # of a share of traffic: what the order of adding up can change


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
        F.min(F.when(F.col("share") < head - _ROUNDING, F.col("level"))).alias("_head"),
        F.min(F.when(F.col("share") < torso - _ROUNDING, F.col("level"))).alias("_torso"),
    )
    band = F.when(level >= F.col("_head"), "head").when(level >= F.col("_torso"), "torso").otherwise("tail")
    return rows.crossJoin(F.broadcast(ends)).withColumn(TRAFFIC_BAND, band).drop("_head", "_torso")


def bounded(rows: DataFrame, *, segments: Sequence[Sequence[str]], most: int, many: str) -> DataFrame:
    """The rows with no segment of more than `most` values, or a refusal.

    With `many` = other, a column with too many values keeps its largest ones, and the others become `(other)`.
    """
    single = [names for names in segments if len(names) == 1]
    over = _over(rows, segments, most)
    if over and many == "other":
        capped = [names[0] for names in single if names[0] in over]
        for name in capped:
            rows = _capped(rows, name, most)
        over = _over(rows, [names for names in segments if len(names) > 1], most) if capped else over
    for name, values in over.items():
        hint = "choose a coarser column" if [name] in map(list, single) else "combine coarser columns"
        cap = ", or set statistics.many_values: other" if many == "refuse" else ""
        raise DataQualityError(
            f"the segment {name!r} has about {values:,} values, more than statistics.max_values = {most:,}",
            hint=f"{hint}, raise statistics.max_values{cap}",
        )
    return rows


def _over(rows: DataFrame, segments: Sequence[Sequence[str]], most: int) -> dict[str, int]:
    """The segments with more than `most` values, counted in one pass and never listed."""
    if not segments:
        return {}
    each = [F.approx_count_distinct(F.concat_ws(BETWEEN, *names)).alias(str(at)) for at, names in enumerate(segments)]
    found = rows.agg(*each).first()
    assert found is not None
    # The count is approximate, to 5 %: a segment is over the bound when it is so beyond doubt.
    return {BETWEEN.join(names): found[at] for at, names in enumerate(segments) if found[at] > 1.1 * most}


def _capped(rows: DataFrame, name: str, most: int) -> DataFrame:
    """The rows with the values of one column that the fewest queries have as one."""
    by_size = rows.groupBy(name).count().orderBy(F.desc("count"), name)
    largest = by_size.limit(most).select(name, F.lit(True).alias("_keep"))
    kept = F.when(F.col("_keep") | F.col(name).isNull(), F.col(name)).otherwise(F.lit(OTHER))
    return rows.join(F.broadcast(largest), name, "left").withColumn(name, kept).drop("_keep")
