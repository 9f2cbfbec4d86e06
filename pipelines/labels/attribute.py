"""Give carts and purchases that carry no page to the click that led to them."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F


def attribute(interactions: DataFrame, *, window_days: float) -> DataFrame:
    """Fill in `serp_id`: the page of the same user's latest click on the same document within the window.

    Last-click attribution, as one pass over each user's and document's events in order of time: a hot user or a hot
    product costs its number of events, not their square. `attribution` says how the page is known: `given`; `click`;
    `ambiguous`, where the user had clicked the document on several pages within the window (the latest is taken); or
    `none`, where no click was found.
    """
    in_time = Window.partitionBy("user_id", "doc_id").orderBy("ts", "after_click", "event_id")
    before = in_time.rowsBetween(Window.unboundedPreceding, -1)
    micros = F.unix_micros("ts")
    span = int(window_days * 86_400 * 1_000_000)

    is_click = (F.col("kind") == "click") & F.col("serp_id").isNotNull()
    page, at = F.when(is_click, F.col("serp_id")), F.when(is_click, micros)
    last_page = F.last(page, ignorenulls=True).over(before)
    last_at = F.last(at, ignorenulls=True).over(before)
    # The latest click on any page but the last one: remembered whenever the page changes.
    changed = is_click & (F.col("last_page") != F.col("serp_id"))
    other_at = F.last(F.when(changed, F.col("last_at")), ignorenulls=True).over(before)
    return (
        # Named, so that all windows below know themselves to be in the same order: one sort.
        interactions.withColumn("after_click", F.col("kind") != "click")
        .withColumn("last_page", last_page)
        .withColumn("last_at", last_at)
        .withColumn("other_at", other_at)
        .withColumn("attribution", _attribution(micros, span))
        .withColumn("serp_id", _page())
        .drop("after_click", "last_page", "last_at", "other_at")
    )


def _attribution(micros: Column, span: int) -> Column:
    return (
        F.when(F.col("serp_id").isNotNull(), F.lit("given"))
        .when(F.col("last_at").isNull() | (micros - F.col("last_at") > span), F.lit("none"))
        .when(micros - F.col("other_at") <= span, F.lit("ambiguous"))
        .otherwise(F.lit("click"))
    )


def _page() -> Column:
    """The page; an event without one gets a page of its own, so that pageless events do not pile up in one place."""
    nowhere = F.concat(F.lit("unattributed/"), "event_id")
    return F.when(F.col("attribution") == "none", nowhere).otherwise(F.coalesce("serp_id", "last_page"))


def count_attributions(attributed: DataFrame) -> DataFrame:
    """How the page of each kind of event is known."""
    return attributed.groupBy("kind", "attribution").agg(F.count(F.lit(1)).alias("events"))
