"""Find users and user-days that are not people's: an aggregate of the log by user, small, and joined back."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.denoise.apply import failed
from pipelines.denoise.settings import DenoiseSettings
from udfs.crawlers import crawler

DAY = 86_400
EVERY_DAY = -1


def day_of(ts: Column | str) -> Column:
    """The day of an event, counted from 1970 in UTC, so that it does not depend on where the job runs."""
    return F.floor(F.unix_micros(ts) / F.lit(1_000_000 * DAY)).cast("int")


def suspect_users(impressions: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """One row per user that fails a rule: `suspicion` maps a day (or −1 for all days) to the bits that failed."""
    in_order = Window.partitionBy("user_id", "day").orderBy("ts", "serp_id")
    days = (
        _visits(impressions)
        .withColumn("gap", (F.unix_micros("ts") - F.lag(F.unix_micros("ts")).over(in_order)) / 1e6)
        .groupBy("user_id", "day")
        .agg(
            F.count(F.lit(1)).alias("pages"),
            F.mean("gap").alias("gap_mean"),
            F.stddev_samp("gap").alias("gap_deviation"),
            F.max("crawler").alias("crawler"),
        )
    )
    found = F.array(
        F.struct("day", failed("user_day", settings).alias("bits")),
        F.struct(F.lit(EVERY_DAY).alias("day"), failed("user", settings).alias("bits")),
    )
    return (
        days.select("user_id", F.explode(found).alias("found"))
        .where(F.col("found.bits") != 0)
        .select("user_id", "found.*")
        .groupBy("user_id", "day")
        .agg(F.bit_or("bits").alias("bits"))
        .groupBy("user_id")
        .agg(F.map_from_entries(F.collect_list(F.struct("day", "bits"))).alias("suspicion"))
        .select("user_id", "suspicion")
    )


def _visits(impressions: DataFrame) -> DataFrame:
    """One row per user and page, with whether its user agent names a crawler; all of a user's in one place."""
    return (
        # The user agent is a key, not an aggregate: the largest of several strings would have Spark sort the log.
        impressions.groupBy("user_id", "serp_id", "user_agent")
        .agg(F.min("ts").alias("ts"))
        .withColumn("crawler", crawler("user_agent"))
        .repartition("user_id")
        .groupBy("user_id", "serp_id")
        .agg(F.min("ts").alias("ts"), F.max("crawler").alias("crawler"))
        .select("user_id", "serp_id", "ts", day_of("ts").alias("day"), "crawler")
    )


def mark_users(rows: DataFrame, suspects: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """Put the bits of the user rules, and of the rules on single results, into every row."""
    suspicion = F.col("suspicion")
    on_day = F.coalesce(suspicion[day_of("ts")], F.lit(0))
    always = F.coalesce(suspicion[F.lit(EVERY_DAY)], F.lit(0))
    return (
        rows.join(F.broadcast(suspects), on="user_id", how="left")
        .withColumn("bits", on_day.bitwiseOR(always).bitwiseOR(failed("result", settings)))
        .drop("suspicion")
    )
