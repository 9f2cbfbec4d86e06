"""Count what is left by query, document and position, and what was dropped by reason: one shuffle, one sort."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipelines.denoise.apply import failed
from pipelines.denoise.settings import DenoiseSettings
from pipelines.denoise.users import day_of

PAIR = ("query_id", "doc_id")
PLACE = ("context", "position", "last_click", "after", "shuffled")
COUNTS = ("impressions", "clicks", "carts", "purchases")
BUCKETS = 50  # of the jackknife
_SALTS = 16
_INSPECTED = 8  # one query in so many keeps the system and day of its impressions


def tally(
    judged: DataFrame, settings: DenoiseSettings, *, history: bool = False, shuffled_systems: Sequence[str] = ()
) -> DataFrame:
    """One row per fate: what is kept by context × query × document × position, what is dropped by rules and user.

    `bits` is 0 for kept rows. `users` counts each user of a pair once, at the first position where the pair met them,
    so that it sums up to the users of the pair. `last_click` is the position of the nearest click above and `after` the
    document there if it stands directly above, where session models ask for the `history`; `shuffled` marks results
    of the systems that serve in random order. Everything after this table is small; nothing goes back to the log.
    """
    shuffled = F.col("system").isin(*shuffled_systems) if shuffled_systems else F.lit(False)
    rows = _spread(_with_history(judged, history).withColumn("shuffled", shuffled))
    kept = F.col("fate") == "kept"
    return (
        _count_readers(rows.repartition(*PAIR))
        .withColumn("pair_clicks", F.sum("clicks").over(Window.partitionBy(*PAIR)))
        .withColumn("bits", F.when(kept, failed("pair", settings)).otherwise(F.col("bits")))
        .withColumn("dropped_user", F.when(F.col("bits") != 0, F.col("user_id")))
        .withColumn("users", F.when((F.col("bits") == 0) & (F.col("user_row") == 1), F.col("rows")).otherwise(0))
        .groupBy(*PAIR, *PLACE, "system", "day", "bits", "dropped_user", "row")
        .agg(*[F.sum(name).alias(name) for name in (*COUNTS, "users")])
    )


def _count_readers(rows: DataFrame) -> DataFrame:
    """Rows that are alike to the rules on pairs, counted: what follows sees far fewer than the log has.

    Numbers every user's rows on a pair in an order drawn by hash. Who clicked a pair once at most cannot outweigh
    others, and is forgotten here.
    """
    drawn = Window.partitionBy("reader", *PAIR, "user_id").orderBy("draw", "serp_id", "position")
    whole = drawn.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    features = {
        "user_row": F.row_number().over(drawn),
        "user_rows": F.count(F.lit(1)).over(whole),
        "user_clicks": F.sum("clicks").over(whole),
    }
    dropped = F.col("bits") != 0
    return (
        # Sorted by a hash first: ids that begin alike would have to be compared letter by letter, again and again.
        rows.withColumns({"reader": F.xxhash64(*PAIR, "user_id"), "draw": F.xxhash64("serp_id")})
        .withColumns(features)
        .withColumn("user_id", F.when(dropped | (F.col("user_clicks") > 1), F.col("user_id")))
        .withColumns({name: F.when(~dropped, F.col(name)) for name in features})
        .groupBy(*PAIR, *PLACE, "system", "day", "bits", "fate", "row", "user_id", *features)
        .agg(F.count(F.lit(1)).alias("rows"), *[F.sum(name).alias(name) for name in COUNTS])
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
        *[F.when(kept, F.col(name)).alias(name) for name in PLACE],
        F.when(inspected, F.col("system")).alias("system"),
        F.when(inspected, day_of("ts")).alias("day"),
        "bits",
        F.when(kept, F.lit("kept")).alias("fate"),
        "row",
        *COUNTS,
    )


def _with_history(judged: DataFrame, history: bool) -> DataFrame:
    """The nearest counted click above each result: its position (0 for none), its document if it is the next above."""
    if not history:
        return judged.withColumn("last_click", F.lit(0)).withColumn("after", F.lit(None).cast("string"))
    above = Window.partitionBy("serp_id").orderBy("position", "kind").rowsBetween(Window.unboundedPreceding, -1)
    counted = (F.col("bits") == 0) & (F.col("clicks") > 0)
    last = F.last(F.when(counted, F.struct("position", "doc_id")), ignorenulls=True).over(above)
    directly = F.col("last.position") == F.col("position") - 1
    return (
        judged.withColumn("last", last)
        .withColumn("last_click", F.coalesce("last.position", F.lit(0)))
        .withColumn("after", F.when(directly, F.col("last.doc_id")))
        .drop("last")
    )


def cells_of(tallied: DataFrame, *, max_position: int) -> DataFrame:
    """The kept rows: one per query × document × place, with the jackknife bucket of its query."""
    return (
        tallied.where(F.col("bits") == 0)
        .withColumn("position", F.least("position", F.lit(max_position)))
        .groupBy(*PAIR, *PLACE)
        .agg(*[F.sum(name).alias(name) for name in (*COUNTS, "users")])
        .withColumn("bucket", F.pmod(F.xxhash64(F.lit("jackknife"), "query_id"), F.lit(BUCKETS)).cast("int"))
        .select(*PAIR, *PLACE, "bucket", *COUNTS, "users")
    )
