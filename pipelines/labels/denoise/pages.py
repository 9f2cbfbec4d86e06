"""Apply the rules on events and pages to impressions and interactions together, in one shuffle and one sort."""

from collections.abc import Sequence
from enum import IntFlag

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.labels.attribute import UNPLACED
from pipelines.labels.denoise.apply import combine_rules
from pipelines.labels.denoise.registry import UNATTRIBUTED, rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings

# Rows are sorted by a hash first: comparing ids with a common prefix is slow.
PAGE = ("page", "serp_id")
RESULT = (*PAGE, "doc_id")
NUMBERED = ("previous_event_id", "seconds_since_previous", "nth")
KINDS = {"clicks": "click", "carts": "cart", "purchases": "purchase"}
_COMPARED = 64  # positions of a page that are compared with each other, the bits of a long


class PageMark(IntFlag):
    """What one impression of each page says about the page, so that pages can be counted without a shuffle."""

    PAGE = 1  # set on one kept impression of each page; 0 on all others
    CLICKED = 2  # a result was clicked, whether or not the click counts
    STACKED = 4  # several documents have the same position
    NAMELESS = 8  # the user is unknown


def combine_events(impressions: DataFrame, attributed: DataFrame, *, contexts: Sequence[str]) -> DataFrame:
    """Impressions and events as rows of one table, distinguished by `kind`."""
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
        "nameless",
        F.when(F.col("nameless"), F.col("user_agent")).alias("user_agent"),
    )
    done = _number_events(attributed).select(
        "serp_id", "doc_id", "kind", "ts", "user_id", "nameless", "event_id", "dwell_seconds", "value", "attribution",
        *NUMBERED,
    )  # fmt: skip
    return shown.unionByName(done, allowMissingColumns=True)


def _number_events(attributed: DataFrame) -> DataFrame:
    """Add the previous event of the same kind on the same result, and the number of the event.

    Before the union with impressions, which are ten times as many and need none of this.
    """
    act = Window.partitionBy("serp_id", "doc_id", "kind").orderBy("ts", "event_id")
    since = (F.unix_micros("ts") - F.lag(F.unix_micros("ts")).over(act)) / 1e6
    features = (F.lag("event_id").over(act), since, F.row_number().over(act))
    return attributed.withColumns(dict(zip(NUMBERED, features, strict=True)))


def apply_page_rules(rows: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """Complete the bits of every row, and add to each impression the clicks, carts and purchases that count.

    A rule on a single event does not drop its impression; a rule on a user, a result or a page drops both. A rule on an
    impression drops only that: of a document that a page shows twice, all events belong to the highest place.
    """
    # The impressions of a result come first, the highest place before the others.
    order = (F.col("position").asc_nulls_last(), "ts", "query_id", "user_id", "system", "context")
    in_order, page = Window.partitionBy(*RESULT).orderBy(*order), Window.partitionBy(*PAGE)
    result = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    is_event = F.col("kind") != "impression"
    own = F.when(is_event, combine_rules("event", settings).bitwiseOR(_unattributed())).otherwise(
        combine_rules("impression", settings)
    )
    inherited = F.coalesce("shown_bits", F.lit(0)).bitwiseOR(combine_rules("page", settings))
    bits = F.col("bits").bitwiseOR(own).bitwiseOR(inherited)
    counts = {name: F.sum(_flag((F.col("kind") == kind) & (F.col("bits") == 0))) for name, kind in KINDS.items()}
    rows = (
        # All windows below are of pages or parts of them: partitioned by page once, they share one shuffle and sort.
        rows.repartition("serp_id")
        .withColumn("page", F.xxhash64("serp_id"))
        .withColumns(
            {"nth_place": F.row_number().over(in_order)}
            | {name: feature.over(result) for name, feature in _result_features().items()}
        )
        .withColumns({name: feature.over(page) for name, feature in _page_features().items()})
        .withColumn("seconds_after_page", (F.unix_micros("ts") - F.unix_micros("page_at")) / 1e6)
        .withColumn("bits", bits)
        .withColumns({name: count.over(result) for name, count in counts.items()})
        .withColumns({name: feature.over(page) for name, feature in _mark_features().items()})
    )
    return _select_outcomes(rows, is_event)


def _flag(condition: Column) -> Column:
    return F.when(condition, 1).otherwise(0)


def _result_features() -> dict[str, Column]:
    """Features of one result on one page."""
    impression = F.col("kind") == "impression"
    click, conversion = F.col("kind") == "click", F.col("kind").isin("cart", "purchase")
    return {
        "shown": F.max(impression),
        "page_at": F.max(F.when(impression, F.col("ts"))),
        "shown_bits": F.first(F.when(impression, F.col("bits"))),
        "was_clicked": F.max(click),
        "longest_dwell": F.max(F.when(click, F.col("dwell_seconds"))),
        "last_conversion_at": F.max(F.when(conversion, F.col("ts"))),
    }


def _is_place() -> Column:
    """Whether the row is the highest place of a result on its page."""
    return (F.col("kind") == "impression") & (F.col("nth_place") == 1)


def _page_features() -> dict[str, Column]:
    return {"results": F.sum(_flag(_is_place())), "results_clicked": F.sum(_flag(_is_place() & F.col("was_clicked")))}


def _mark_features() -> dict[str, Column]:
    """Features of the impressions of a page that are kept: one document that stands for the page, and its positions."""
    kept = _is_place() & (F.col("bits") == 0)
    compared = kept & (F.col("position") <= _COMPARED)
    return {
        "page_doc": F.min(F.when(kept, F.col("doc_id"))),
        "places": F.sum(_flag(compared)),
        "positions": F.bit_or(F.when(compared, F.expr("shiftleft(1L, position - 1)"))),
    }


def _page_mark() -> Column:
    flags = {
        PageMark.CLICKED: F.col("results_clicked") > 0,
        PageMark.STACKED: F.col("places") > F.bit_count("positions"),
        PageMark.NAMELESS: F.col("nameless"),
    }
    mark = F.lit(int(PageMark.PAGE))
    for flag, condition in flags.items():
        mark = mark + F.when(condition, int(flag)).otherwise(0)
    stands_for_page = _is_place() & (F.col("bits") == 0) & (F.col("doc_id") == F.col("page_doc"))
    return F.when(stands_for_page, mark).otherwise(0)


def _unattributed() -> Column:
    return F.when(F.col("attribution").isin(*UNPLACED), rule_bit(UNATTRIBUTED)).otherwise(0)


def _select_outcomes(rows: DataFrame, is_event: Column) -> DataFrame:
    """Kept impressions with the counts of their kept events, and every dropped row."""
    counts = _is_place() & (F.col("bits") == 0)
    own = {
        name: F.when(is_event, _flag(F.col("kind") == kind)).when(counts, F.col(name)).otherwise(0)
        for name, kind in KINDS.items()
    }
    event = F.to_json(F.struct("event_id", "kind", "doc_id", "user_id", "ts", "serp_id", "dwell_seconds", "value"))
    quarantined = F.col("bits").bitwiseAND(rule_bit("no_impression")) != 0
    return (
        rows.where(~is_event | (F.col("bits") != 0))
        .withColumn("row", F.when(quarantined, event))
        .withColumn("impressions", _flag(~is_event))
        .withColumn("page_mark", _page_mark())
        .withColumns(own)
        .select(
            "serp_id", "query_id", "doc_id", "user_id", "nameless", "context", "system", "position", "ts", "kind",
            "bits", "row", "page_mark", "impressions", *KINDS,
        )
    )  # fmt: skip


def select_last_pages(outcomes: DataFrame) -> DataFrame:
    """The newest page of each logged system and query that no rule drops, as rankings."""
    shown = outcomes.where((F.col("impressions") == 1) & (F.col("bits") == 0) & F.col("system").isNotNull())
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
