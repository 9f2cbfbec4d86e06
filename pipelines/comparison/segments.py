"""Segments: bands derived from the results, and a limit on how many values a segment may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from pipelines.comparison.settings import BandSettings, band_column
from schemas.errors import DataQualityError
from udfs.statistics.metric_files import VALUES_DDL, list_values, read_metric_files
from udfs.statistics.plan import BETWEEN

OTHER = "(other)"
_ROUNDING = 1e-9  # of a share of traffic: what the order of addition can change


def add_bands(query_metrics: DataFrame, *, bands: BandSettings, columns: Sequence[str]) -> DataFrame:
    """The query metrics with the bands among `columns`."""
    for name, add_band in DERIVED.items():
        if band_column(name) in columns:
            query_metrics = add_band(query_metrics, band_column(name), getattr(bands, name))
    return query_metrics


def add_relevant_band(rows: DataFrame, column: str, cuts: Sequence[int]) -> DataFrame:
    """The number of relevant documents: 0, then a band up to each cut, then the rest (0, 1, 2-5, 6+)."""
    band = F.when(F.col("relevant") == 0, F.lit("0"))
    low = 1
    for cut in cuts:
        band = band.when(F.col("relevant") <= cut, F.lit(str(cut) if low == cut else f"{low}-{cut}"))
        low = cut + 1
    return rows.withColumn(column, band.otherwise(F.lit(f"{low}+")))


def add_traffic_band(rows: DataFrame, column: str, cuts: tuple[float, float]) -> DataFrame:
    """Head, torso and tail by share of all traffic, most frequent queries first.

    Queries of equal weight, to three digits, share a band: the result does not depend on the order of the rows, and
    only a few thousand weights have to be sorted, however many queries there are.
    """
    head, torso = cuts
    level = _round_weight(F.col("weight"))
    levels = rows.groupBy(level.alias("level")).agg(F.sum("weight").alias("traffic"))
    before = F.sum("traffic").over(Window.orderBy(F.desc("level"))) - F.col("traffic")
    total = F.sum("traffic").over(Window.partitionBy())
    share = before / F.nullif(total, F.lit(0.0))
    ends = levels.select("level", share.alias("share")).agg(
        F.min(F.when(F.col("share") < head - _ROUNDING, F.col("level"))).alias("_head"),
        F.min(F.when(F.col("share") < torso - _ROUNDING, F.col("level"))).alias("_torso"),
    )
    band = F.when(level >= F.col("_head"), "head").when(level >= F.col("_torso"), "torso").otherwise("tail")
    return rows.crossJoin(F.broadcast(ends)).withColumn(column, band).drop("_head", "_torso")


def _round_weight(weight: Column) -> Column:
    """A weight rounded to three digits."""
    unit = F.pow(F.lit(10.0), F.floor(F.log10(weight)) - 2)
    return F.when(weight > 0, F.round(weight / unit) * unit).otherwise(F.lit(0.0))


# The segments derived from the results: a key of `bands`, and the function that adds the column `<key>_band`.
DERIVED: Mapping[str, Callable[[DataFrame, str, Any], DataFrame]] = {
    "relevant": add_relevant_band,
    "traffic": add_traffic_band,
}


def limit_segment_values(
    rows: DataFrame, *, segments: Sequence[Sequence[str]], limit: int, many: str, files: Sequence[str] = ()
) -> DataFrame:
    """The rows with at most `limit` values per segment; an error where a segment has more.

    With `many` = other, a column with too many values keeps its largest ones, and the others become `(other)`. With
    `files` of the same rows, workers look into these whether there is anything to do.
    """
    if files and segments and _has_few_values(rows.sparkSession, files, segments, limit):
        return rows
    single = [names for names in segments if len(names) == 1]
    excess = _find_excess(rows, segments, limit)
    if excess and many == "other":
        capped = [names[0] for names in single if names[0] in excess]
        for name in capped:
            rows = _merge_small_values(rows, name, limit)
        excess = _find_excess(rows, [names for names in segments if len(names) > 1], limit) if capped else excess
    for name, values in excess.items():
        raise build_excess_error(name, values, limit, many, combined=[name] not in map(list, single))
    return rows


def build_excess_error(name: str, values: int, limit: int, many: str, *, combined: bool) -> DataQualityError:
    """The error about a segment with too many values."""
    hint = "combine coarser columns" if combined else "choose a coarser column"
    ways = "raise statistics.max_values, or set statistics.many_values: other"
    more = ways if many == "refuse" else "or raise statistics.max_values"
    return DataQualityError(
        f"the segment {name!r} has about {values:,} values, more than statistics.max_values = {limit:,}",
        hint=f"{hint}, {more}",
    )


def _has_few_values(spark: SparkSession, files: Sequence[str], segments: Sequence[Sequence[str]], limit: int) -> bool:
    """Whether no segment has more than `limit` values."""
    values = read_metric_files(spark, files, list_values(files, segments, limit), VALUES_DDL)
    counts = Counter(row["segment"] for row in values.distinct().collect())
    return max(counts.values(), default=0) <= limit


def _find_excess(rows: DataFrame, segments: Sequence[Sequence[str]], limit: int) -> dict[str, int]:
    """The segments with more than `limit` values, counted in one pass without listing the values."""
    if not segments:
        return {}
    counts = [F.approx_count_distinct(F.concat_ws(BETWEEN, *names)).alias(str(at)) for at, names in enumerate(segments)]
    row = rows.agg(*counts).first()
    assert row is not None
    # The count is approximate, to 5 %: only a segment that is clearly over the limit is reported.
    return {BETWEEN.join(names): row[at] for at, names in enumerate(segments) if row[at] > 1.1 * limit}


def _merge_small_values(rows: DataFrame, name: str, limit: int) -> DataFrame:
    """The rows with all but the `limit` largest values of one column merged into one."""
    by_size = rows.groupBy(name).count().orderBy(F.desc("count"), name)
    largest = by_size.limit(limit).select(name, F.lit(True).alias("_keep"))
    own = F.when(F.col(name) == OTHER, F.lit(f'"{OTHER}"')).otherwise(F.col(name))  # a value of that name is quoted
    value = F.when(F.col("_keep") | F.col(name).isNull(), own).otherwise(F.lit(OTHER))
    return rows.join(F.broadcast(largest), name, "left").withColumn(name, value).drop("_keep")
