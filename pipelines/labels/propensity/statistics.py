"""Aggregate the counts of a log to what estimators read: a few rows per context, bucket and pair of positions."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

STATISTICS = {
    "statistic": "string",
    "context": "string",
    "bucket": "int",
    "pair": "bigint",
    "position": "int",
    "other": "int",
    "shown": "double",
    "clicks": "double",
    "weight": "double",
}
# Sums of weighted counts are integers of millionths, so that they do not depend on the order of rows.
_MICRO = 1_000_000


def gather_statistics(cells: DataFrame, tallied: DataFrame, *, max_cells: int) -> DataFrame:
    """Sums by position, by pair of positions and on shuffled pages; a sample of cells; how far documents move."""
    parts = [
        _sum_places(cells),
        _sum_edges(cells),
        _sum_shuffled(cells),
        _sample_cells(cells, max_cells),
        _sum_moves(tallied),
    ]
    tables = [part.select(*[_column(part, name) for name in STATISTICS]) for part in parts]
    return reduce(DataFrame.unionByName, tables)


def _column(part: DataFrame, name: str) -> Column:
    value = F.col(name) if name in part.columns else F.lit(None)
    return value.cast(STATISTICS[name]).alias(name)


def _sum_places(cells: DataFrame) -> DataFrame:
    return (
        cells.groupBy("context", "bucket", "position", F.col("history").alias("other"))
        .agg(F.sum("impressions").alias("shown"), F.sum("clicks").alias("clicks"))
        .withColumn("statistic", F.lit("place"))
    )


def _sum_shuffled(cells: DataFrame) -> DataFrame:
    return (
        cells.where("shuffled")
        .groupBy("context", "bucket", "position")
        .agg(F.sum("impressions").alias("shown"), F.sum("clicks").alias("clicks"))
        .withColumn("statistic", F.lit("shuffled"))
    )


def _sum_edges(cells: DataFrame) -> DataFrame:
    """Σ ω and Σ ω·C_k/N_k over the documents seen at both k and j, with ω = N_k·N_j/(N_k + N_j)."""
    here, there = F.col("here"), F.col("there")
    weight = here["n"] * there["n"] / (here["n"] + there["n"])
    return (
        cells.groupBy("context", "bucket", "query_id", "doc_id", "position")
        .agg(F.sum("impressions").alias("n"), F.sum("clicks").alias("c"))
        .groupBy("context", "bucket", "query_id", "doc_id")
        .agg(F.collect_list(F.struct("position", "n", "c")).alias("seen"))
        .where(F.size("seen") > 1)
        .select("context", "bucket", "seen", F.explode("seen").alias("here"))
        .select("context", "bucket", "here", F.explode("seen").alias("there"))
        .where(here["position"] != there["position"])
        .groupBy("context", "bucket", here["position"].alias("position"), there["position"].alias("other"))
        .agg(
            (F.sum(F.round(weight * _MICRO).cast("bigint")) / _MICRO).alias("shown"),
            (F.sum(F.round(weight * here["c"] / here["n"] * _MICRO).cast("bigint")) / _MICRO).alias("clicks"),
            F.count(F.lit(1)).alias("weight"),
        )
        .withColumn("statistic", F.lit("edge"))
    )


def _sample_cells(cells: DataFrame, max_cells: int) -> DataFrame:
    """All cells of queries sampled by hash, about `max_cells` in all."""
    total = cells.agg(F.count(F.lit(1)).alias("total"))
    draw = F.pmod(F.xxhash64(F.lit("cells"), "query_id"), F.lit(1_000_000))
    return (
        cells.crossJoin(F.broadcast(total))
        .where(draw * F.col("total") < F.lit(max_cells * 1_000_000))
        .groupBy(
            "context",
            "bucket",
            F.xxhash64("query_id", "doc_id").alias("pair"),
            "position",
            F.col("history").alias("other"),
        )
        .agg(F.sum("impressions").alias("shown"), F.sum("clicks").alias("clicks"))
        .withColumn("statistic", F.lit("cell"))
    )


def _sum_moves(tallied: DataFrame) -> DataFrame:
    """Of the inspected days: impressions, and those off the usual position of their document, system and day."""
    of_document = ("query_id", "doc_id", "system", "day")
    return (
        tallied.where("bits = 0 AND system IS NOT NULL AND day IS NOT NULL AND NOT shuffled")
        .groupBy(*of_document, "position")
        .agg(F.sum("impressions").alias("n"))
        .groupBy(*of_document)
        .agg(F.sum("n").alias("shown"), F.max("n").alias("usual"))
        .agg(F.sum("shown").alias("shown"), F.sum(F.col("shown") - F.col("usual")).alias("clicks"))
        .withColumn("statistic", F.lit("moved"))
    )
