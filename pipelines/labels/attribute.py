"""Attribute carts and purchases without a page to the click that led to them."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.labels.denoise.nameless import person_id

UNPLACED = ("none", "no_user")  # attributions of events that belong to no page


def attribute_events(interactions: DataFrame, *, window_days: float) -> DataFrame:
    """Fill in `serp_id`: the page of the same user's latest click on the same document within the window.

    Last-click attribution in one pass over the events of each user and document in order of time, so that the cost is
    linear in the events of a hot user or product. `attribution` is where the page comes from: `given`; `click`;
    `ambiguous`, where the user clicked the document on several pages within the window (the latest is taken); `none`,
    where there is no such click; or `no_user`, where the user is nameless (see `denoise.nameless`).
    """
    in_time = Window.partitionBy("person", "doc_id").orderBy("ts", "after_click", "event_id")
    before = in_time.rowsBetween(Window.unboundedPreceding, -1)
    micros = F.unix_micros("ts")
    span = int(window_days * 86_400 * 1_000_000)

    is_click = (F.col("kind") == "click") & F.col("serp_id").isNotNull()
    page, at = F.when(is_click, F.col("serp_id")), F.when(is_click, micros)
    last_page = F.last(page, ignorenulls=True).over(before)
    last_at = F.last(at, ignorenulls=True).over(before)
    # The latest click on any page but the last one: updated whenever the page changes.
    changed = is_click & (F.col("last_page") != F.col("serp_id"))
    other_at = F.last(F.when(changed, F.col("last_at")), ignorenulls=True).over(before)
    return (
        # A column, so that all windows below have the same order and share one sort.
        interactions.withColumn("after_click", F.col("kind") != "click")
        .withColumn("person", person_id(F.coalesce("serp_id", "event_id")))
        .withColumn("last_page", last_page)
        .withColumn("last_at", last_at)
        .withColumn("other_at", other_at)
        .withColumn("attribution", _attribution(micros, span))
        .withColumn("serp_id", _page())
        .drop("after_click", "person", "last_page", "last_at", "other_at")
    )


def _attribution(micros: Column, span: int) -> Column:
    return (
        F.when(F.col("serp_id").isNotNull(), F.lit("given"))
        .when(F.col("nameless"), F.lit("no_user"))
        .when(F.col("last_at").isNull() | (micros - F.col("last_at") > span), F.lit("none"))
        .when(micros - F.col("other_at") <= span, F.lit("ambiguous"))
        .otherwise(F.lit("click"))
    )


def _page() -> Column:
    """The page; an event without one gets a page of its own, so that such events do not skew one partition."""
    nowhere = F.concat(F.lit("unattributed/"), "event_id")
    return F.when(F.col("attribution").isin(*UNPLACED), nowhere).otherwise(F.coalesce("serp_id", "last_page"))


def count_attributions(attributed: DataFrame) -> DataFrame:
    """Events by kind and by where their page comes from."""
    return attributed.groupBy("kind", "attribution").agg(F.count(F.lit(1)).alias("events"))
