"""Judge every result and event of a page: impressions and interactions together, in one shuffle and one sort."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.denoise.apply import failed
from pipelines.denoise.registry import UNATTRIBUTED, bit
from pipelines.denoise.settings import DenoiseSettings

# Rows are sorted by a hash first: ids that begin alike would have to be compared letter by letter, again and again.
PAGE = ("page", "serp_id")
RESULT = (*PAGE, "doc_id")
NUMBERED = ("previous_event_id", "seconds_since_previous", "nth")
KINDS = {"clicks": "click", "carts": "cart", "purchases": "purchase"}


def together(impressions: DataFrame, attributed: DataFrame, *, contexts: Sequence[str]) -> DataFrame:
    """Impressions and events as rows of one table, told apart by `kind`."""
    parts = [F.concat(F.lit(f"{name}="), F.coalesce(F.col(name).cast("string"), F.lit("?"))) for name in contexts]
    context = F.concat_ws(", ", *parts) if parts else F.lit("all")
    shown = impressions.select(
        "serp_id",
        "doc_id",
        F.lit("impression").alias("kind"),
        "ts",
        "user_id",
        "query_id",
        "position",
        context.alias("context"),
        "system",
        F.coalesce("sponsored", F.lit(False)).alias("sponsored"),
    )
    done = _number_events(attributed).select(
        "serp_id", "doc_id", "kind", "ts", "user_id", "event_id", "dwell_seconds", "value", "attribution", *NUMBERED
    )
    return shown.unionByName(done, allowMissingColumns=True)


def _number_events(attributed: DataFrame) -> DataFrame:
    """Say of each event which came before it, of the same kind on the same result.

    Impressions are not among them yet: there are ten times as many, and they have no part in this.
    """
    act = Window.partitionBy("serp_id", "doc_id", "kind").orderBy("ts", "event_id")
    since = (F.unix_micros("ts") - F.lag(F.unix_micros("ts")).over(act)) / 1e6
    features = (F.lag("event_id").over(act), since, F.row_number().over(act))
    return attributed.withColumns(dict(zip(NUMBERED, features, strict=True)))


def judge_pages(rows: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """Finish the bits of every row, and give each impression the clicks, carts and purchases that still count.

    A rule on a single event never touches its impression; a rule on a user, a result or a page takes both.
    """
    result, page = Window.partitionBy(*RESULT), Window.partitionBy(*PAGE)
    is_event = F.col("kind") != "impression"
    own = F.when(is_event, failed("event", settings).bitwiseOR(_unattributed())).otherwise(0)
    inherited = F.coalesce("shown_bits", F.lit(0)).bitwiseOR(failed("page", settings))
    bits = F.col("bits").bitwiseOR(own).bitwiseOR(inherited)
    counted = {name: F.sum(_one((F.col("kind") == kind) & (F.col("bits") == 0))) for name, kind in KINDS.items()}
    rows = (
        # All windows below are of pages or parts of them: brought together by page once, they share shuffle and sort.
        rows.repartition("serp_id")
        .withColumn("page", F.xxhash64("serp_id"))
        .withColumns({name: feature.over(result) for name, feature in _result_features().items()})
        .withColumns({name: feature.over(page) for name, feature in _page_features().items()})
        .withColumn("seconds_after_page", (F.unix_micros("ts") - F.unix_micros("page_at")) / 1e6)
        .withColumn("bits", bits)
        .withColumns({name: count.over(result) for name, count in counted.items()})
    )
    return _one_row_per_fate(rows, is_event)


def _one(condition: Column) -> Column:
    return F.when(condition, 1).otherwise(0)


def _result_features() -> dict[str, Column]:
    """What all rows of one result on one page have in common."""
    impression = F.col("kind") == "impression"
    click, conversion = F.col("kind") == "click", F.col("kind").isin("cart", "purchase")
    return {
        "shown": F.max(impression),
        "page_at": F.max(F.when(impression, F.col("ts"))),
        "shown_bits": F.max(F.when(impression, F.col("bits"))),
        "was_clicked": F.max(click),
        "longest_dwell": F.max(F.when(click, F.col("dwell_seconds"))),
        "last_conversion_at": F.max(F.when(conversion, F.col("ts"))),
    }


def _page_features() -> dict[str, Column]:
    impression = F.col("kind") == "impression"
    return {"results": F.sum(_one(impression)), "results_clicked": F.sum(_one(impression & F.col("was_clicked")))}


def _unattributed() -> Column:
    return F.when(F.col("attribution") == "none", bit(UNATTRIBUTED)).otherwise(0)


def _one_row_per_fate(rows: DataFrame, is_event: Column) -> DataFrame:
    """Kept impressions with what happened on them, and whatever was dropped. Kept events live on in the counts."""
    own = {
        name: F.when(is_event, _one(F.col("kind") == kind)).when(F.col("bits") == 0, F.col(name)).otherwise(0)
        for name, kind in KINDS.items()
    }
    lost = F.to_json(F.struct("event_id", "kind", "doc_id", "user_id", "ts", "serp_id", "dwell_seconds", "value"))
    quarantined = F.col("bits").bitwiseAND(bit("no_impression")) != 0
    return (
        rows.where(~is_event | (F.col("bits") != 0))
        .withColumn("row", F.when(quarantined, lost))
        .withColumn("impressions", _one(~is_event))
        .withColumns(own)
        .select(
            "serp_id", "query_id", "doc_id", "user_id", "context", "system", "position", "ts", "kind", "bits", "row",
            "impressions", *KINDS,
        )
    )  # fmt: skip


def last_pages(judged: DataFrame) -> DataFrame:
    """Each logged system's answer to each query: the newest page with nothing against it, as rankings."""
    shown = judged.where((F.col("impressions") == 1) & (F.col("bits") == 0) & F.col("system").isNotNull())
    results = F.collect_list(F.struct("position", "doc_id")).alias("results")
    newest = F.max_by("results", F.struct("at", "serp_id")).alias("results")
    return (
        shown.groupBy("system", "query_id", "serp_id")
        .agg(F.max("ts").alias("at"), results)
        .groupBy("system", "query_id")
        .agg(newest)
        .select("system", "query_id", F.explode("results").alias("result"))
        .select(
            "system",
            "query_id",
            F.col("result.doc_id").alias("doc_id"),
            F.col("result.position").alias("rank"),
            F.lit(None).cast("double").alias("score"),
        )
    )
