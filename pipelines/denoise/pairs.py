"""Count what is left by query, document and position, and what was dropped by reason: one shuffle, one sort."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.denoise.registry import failed
from pipelines.denoise.settings import DenoiseSettings
from pipelines.denoise.users import day_of

COUNTS = ("impressions", "clicks", "carts", "purchases")
BUCKETS = 50  # of the jackknife
_SALTS = 16
_INSPECTED = 8  # one query in so many keeps the system and day of its impressions


def tally(judged: DataFrame, settings: DenoiseSettings, *, sessions: bool) -> DataFrame:
    """One row per fate: what is kept by context × query × document × position, what is dropped by rules and user.

    `bits` is 0 for kept rows. `users` counts each user of a pair once, at the first position where the pair met them,
    so that it sums up to the users of the pair. `last_click` is the position of the nearest click above, where
    session models ask for it. Everything after this table is small; nothing goes back to the log.
    """
    pair, reader = ["query_id", "doc_id"], ["query_id", "doc_id", "user_id"]
    of_pair = Window.partitionBy(*pair)
    of_reader = Window.partitionBy(*reader)
    drawn = of_reader.orderBy(F.xxhash64("serp_id"), "serp_id", "position")
    features = {
        "user_row": F.row_number().over(drawn),
        "user_rows": F.count(F.lit(1)).over(of_reader),
        "user_clicks": F.sum("clicks").over(of_reader),
        "pair_clicks": F.sum("clicks").over(of_pair),
    }
    kept = F.col("bits") == 0
    rows = _spread(_with_last_click(judged) if sessions else judged.withColumn("last_click", F.lit(0)))
    return (
        rows.repartition(*[F.col(name) for name in pair])
        .withColumns(features)
        .withColumn("bits", F.when(F.col("fate") == "kept", failed("pair", settings)).otherwise(F.col("bits")))
        .withColumn("dropped_user", F.when(~kept, F.col("user_id")))
        .withColumn("users", F.when(kept & (F.col("user_row") == 1), 1).otherwise(0))
        .groupBy(*pair, "context", "position", "last_click", "system", "day", "bits", "dropped_user", "row")
        .agg(*[F.sum(name).alias(name) for name in (*COUNTS, "users")])
    )


def _spread(rows: DataFrame) -> DataFrame:
    """Forget of each row what its fate does not need, and spread dropped rows evenly: one bot may have millions."""
    kept = F.col("bits") == 0
    salt = F.pmod(F.xxhash64("serp_id"), F.lit(_SALTS)).cast("string")
    inspected = kept & (F.pmod(F.xxhash64(F.lit("inspect"), "query_id"), F.lit(_INSPECTED)) == 0)
    return rows.select(
        F.when(kept, F.col("query_id")).alias("query_id"),
        F.when(kept, F.col("doc_id")).otherwise(F.concat_ws("#", "user_id", salt)).alias("doc_id"),
        "user_id",
        "serp_id",
        _only(kept, "context"),
        _only(kept, "position"),
        _only(kept, "last_click"),
        _only(inspected, "system"),
        F.when(inspected, day_of("ts")).alias("day"),
        "bits",
        F.when(kept, F.lit("kept")).alias("fate"),
        "row",
        *COUNTS,
    )


def _only(condition: Column, name: str) -> Column:
    return F.when(condition, F.col(name)).alias(name)


def _with_last_click(judged: DataFrame) -> DataFrame:
    """The position of the nearest counted click above each result, 0 where there is none."""
    above = Window.partitionBy("serp_id").orderBy("position").rowsBetween(Window.unboundedPreceding, -1)
    clicked = F.when((F.col("bits") == 0) & (F.col("clicks") > 0), F.col("position"))
    return judged.withColumn("last_click", F.coalesce(F.max(clicked).over(above), F.lit(0)))


def cells_of(tallied: DataFrame) -> DataFrame:
    """The kept rows: one per context × query × document × position (× last click), with its jackknife bucket."""
    return (
        tallied.where(F.col("bits") == 0)
        .groupBy("query_id", "doc_id", "context", "position", "last_click")
        .agg(*[F.sum(name).alias(name) for name in (*COUNTS, "users")])
        .withColumn("bucket", F.pmod(F.xxhash64(F.lit("jackknife"), "query_id"), F.lit(BUCKETS)).cast("int"))
        .select("query_id", "doc_id", "context", "position", "last_click", "bucket", *COUNTS, "users")
    )
