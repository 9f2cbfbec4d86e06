"""Find users and days of users that are not people: a small aggregate of the log by user, joined back to it."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.labels.denoise.apply import combine_columns
from pipelines.labels.denoise.settings import DenoiseSettings
from udfs.spark.crawlers import match_crawlers

DAY = 86_400
EVERY_DAY = -1


def to_day(ts: Column | str) -> Column:
    """Days since 1970 in UTC, so that the day of an event does not depend on the session's time zone."""
    return F.floor(F.unix_micros(ts) / F.lit(1_000_000 * DAY)).cast("int")


def select_visits(impressions: DataFrame) -> DataFrame:
    """One row per user, page and user agent: all that is known of users, a tenth of the log."""
    # The user agent is a key, not an aggregate: max() of a string would make Spark sort the log.
    return impressions.groupBy("user_id", "serp_id", "user_agent").agg(F.min("ts").alias("ts"))


def find_suspect_users(visits: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """One row per suspect that a rule drops: `suspicion` maps a day (or −1 for all days) to the bits of the rules."""
    return map_suspicion(flag_users(visits, settings), "suspect")


def map_suspicion(flags: DataFrame, *keys: str) -> DataFrame:
    """The flags of `flag_users`, one row per key."""
    suspicion = F.map_from_entries(F.collect_list(F.struct("day", "bits"))).alias("suspicion")
    return flags.groupBy(*keys).agg(suspicion).select(*keys, "suspicion")


def flag_users(visits: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """One row per suspect and day (−1 for all days) with the bits of the rules that drop it.

    `visits` are those of `select_visits` with `nameless`. A suspect is a user; nameless users are judged by their user
    agents alone.
    """
    in_order = Window.partitionBy("suspect", "day").orderBy("ts", "serp_id")
    days = (
        _group_visits(visits)
        .withColumn("gap", (F.unix_micros("ts") - F.lag(F.unix_micros("ts")).over(in_order)) / 1e6)
        .groupBy("suspect", "day")
        .agg(
            F.count(F.lit(1)).alias("pages"),
            F.mean("gap").alias("gap_mean"),
            F.stddev_samp("gap").alias("gap_deviation"),
            F.max("crawler").alias("crawler"),
        )
    )
    flags = F.array(
        F.struct("day", combine_columns("user_day", settings).alias("bits")),
        F.struct(F.lit(EVERY_DAY).alias("day"), combine_columns("user", settings).alias("bits")),
    )
    return (
        days.select("suspect", F.explode(flags).alias("flag"))
        .where(F.col("flag.bits") != 0)
        .select("suspect", "flag.*")
        .groupBy("suspect", "day")
        .agg(F.bit_or("bits").alias("bits"))
    )


def suspect_id() -> Column:
    """The user, or the user agent of a nameless one."""
    return F.when(F.col("nameless"), F.concat_ws(":", F.lit("agent"), "user_agent")).otherwise(F.col("user_id"))


def _group_visits(visits: DataFrame) -> DataFrame:
    """One row per suspect and page, partitioned by suspect, with whether its user agent names a crawler.

    Nameless users have one row per user agent, so that the rules on the pages of a day cannot apply to them.
    """
    page = F.when(~F.col("nameless"), F.col("serp_id"))
    return (
        visits.withColumn("crawler", match_crawlers("user_agent"))
        .select(suspect_id().alias("suspect"), page.alias("serp_id"), "ts", "crawler")
        .repartition("suspect")
        .groupBy("suspect", "serp_id")
        .agg(F.min("ts").alias("ts"), F.max("crawler").alias("crawler"))
        .select("suspect", "serp_id", "ts", to_day("ts").alias("day"), "crawler")
    )


def mark_users(rows: DataFrame, suspects: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """Add `bits` to every row: the rules on users and on single results that drop it."""
    return (
        rows.withColumn("suspect", suspect_id())
        .join(F.broadcast(suspects), on="suspect", how="left")
        .withColumn("bits", look_up_bits("suspicion").bitwiseOR(combine_columns("result", settings)))
        .drop("suspect", "suspicion", "user_agent")
    )


def look_up_bits(suspicion: str) -> Column:
    """The bits of the rules on users that drop a row of a `day`."""
    on_day = F.coalesce(F.col(suspicion)[F.col("day")], F.lit(0))
    return on_day.bitwiseOR(F.coalesce(F.col(suspicion)[F.lit(EVERY_DAY)], F.lit(0)))
