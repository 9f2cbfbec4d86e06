"""Pages that no rule on pages concerns: their impressions are counted as they are, and only their events meet rules.

Impressions outnumber events ten to one. A page must be looked at as a whole (see `pages`) only if it shows a document
twice, or if people clicked so much on it that a rule on pages may drop it.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.labels.denoise.apply import combine_rules
from pipelines.labels.denoise.pages import (
    KINDS,
    OUTCOME,
    SHOWN_AT,
    PageMark,
    apply_page_rules,
    combine_marks,
    compare_positions,
    describe_results,
    flag,
    mark_unattributed,
    render_quarantined,
)
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.warehouse.checkpoint import Checkpointer

_RESULT = ("serp_id", "doc_id")
_BUCKETS = 1 << 19  # of 64 bits each: the filter of results with events has 4 MB, whatever the size of the log


@dataclass(frozen=True)
class Outcomes:
    """What became of the rows of a log: see `pages.OUTCOME`."""

    plain: DataFrame  # impressions of pages that no rule on pages concerns, without their events; reads the log
    touched: DataFrame  # their events, and the rows of all other pages; a checkpoint

    def select_impressions(self) -> DataFrame:
        """All impressions."""
        return self.plain.unionByName(self.touched.where(F.col("impressions") == 1))


def denoise_rows(
    rows: DataFrame, settings: DenoiseSettings, checkpoint: Checkpointer, *, whole_pages: bool
) -> Outcomes:
    """Apply the rules on results, events and pages to marked rows (see `mark_users`).

    With `whole_pages`, all pages are looked at as a whole, for estimators that need the clicks around a result.
    """
    is_event = F.col("kind") != "impression"
    if whole_pages:
        return Outcomes(
            plain=_count_plain(rows.where(F.lit(False)), settings), touched=checkpoint(apply_page_rules(rows, settings))
        )
    rows = rows.withColumn("page", hash_page())
    impressions, events = rows.where(~is_event), rows.where(is_event)
    inspected = checkpoint(find_inspected_pages(impressions, events, settings))
    plain = _count_plain(impressions.join(inspected, on="page", how="left_anti"), settings)
    placed = place_events(events.join(inspected, on="page", how="left_anti"), plain, settings)
    whole = apply_page_rules(rows.join(inspected, on="page", how="left_semi"), settings)
    return Outcomes(plain=plain, touched=checkpoint(placed.unionByName(whole)))


def hash_page() -> Column:
    """A number for a page: narrower than its id, and two pages with the same number are only looked at together."""
    return F.xxhash64("serp_id")


def find_inspected_pages(impressions: DataFrame, events: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """The pages that show a document twice, and those that a rule on pages may drop."""
    repeated = impressions.groupBy("page", F.xxhash64("doc_id")).count().where("count > 1").select("page")
    clicked = events.where(F.col("kind") == "click").groupBy("page").agg(F.count_distinct("doc_id").alias("results"))
    crowded = clicked.where(F.col("results") >= settings.everything_clicked.results).select("page")
    return repeated.unionByName(crowded).distinct()


def _count_plain(impressions: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """Impressions as outcomes: every document of their page has one place."""
    own = combine_rules("impression", settings)
    counts = {"impressions": F.lit(1), **dict.fromkeys(KINDS, F.lit(0))}
    return (
        impressions.withColumn("nth_place", F.lit(1))
        .withColumn("bits", F.col("bits").bitwiseOR(own))
        .withColumns({"row": F.lit(None).cast("string"), "page_mark": F.lit(0), **counts})
        .select(*OUTCOME)
    )


def place_events(events: DataFrame, plain: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """Complete the bits of events, and give those that count the place of their impression.

    As `apply_page_rules`, but an event needs only its impression and the other events on it.
    """
    result = Window.partitionBy(*_RESULT)
    features = {name: describe_results()[name].over(result) for name in ("longest_dwell", "last_conversion_at")}
    own = combine_rules("event", settings).bitwiseOR(mark_unattributed())
    bits = F.col("bits").bitwiseOR(own).bitwiseOR(F.coalesce("shown_bits", F.lit(0)))
    kept = F.col("bits") == 0
    # An event that counts is a part of its impression: of its user and of its day.
    moved = {"user_id": "shown_user_id", "nameless": "shown_nameless", "ts": "page_at"}
    clicked = (F.col("kind") == "click") & F.col("shown")
    return (
        events.drop(*SHOWN_AT)
        .join(_select_places(keep_matching(plain, events)), on=list(_RESULT), how="left")
        .withColumn("shown", F.col("page_at").isNotNull())
        .withColumns(features)
        .withColumn("seconds_after_page", (F.unix_micros("ts") - F.unix_micros("page_at")) / 1e6)
        .withColumn("bits", bits)
        .where(F.col("shown") | ~kept)
        .withColumn("row", render_quarantined())
        .withColumn("page_mark", F.when(clicked, int(PageMark.CLICKED)).otherwise(0))
        .withColumns({"impressions": F.lit(0), **{name: flag(F.col("kind") == kind) for name, kind in KINDS.items()}})
        .withColumns({to: F.when(kept, F.col(source)).otherwise(F.col(to)) for to, source in moved.items()})
        .select(*OUTCOME)
    )


def _select_places(impressions: DataFrame) -> DataFrame:
    """What events need of their impression, under names of its own."""
    own = [F.col(name).alias(f"shown_{name}") for name in ("user_id", "nameless", "bits")]
    return impressions.select(*_RESULT, *SHOWN_AT, F.col("ts").alias("page_at"), *own)


def keep_matching(impressions: DataFrame, events: DataFrame) -> DataFrame:
    """Leave out most impressions without events before they are shuffled: a Bloom filter with one hash."""
    key = F.xxhash64(*_RESULT)
    bucket = key.bitwiseAND(F.lit(_BUCKETS - 1)).alias("bucket")
    bit = F.expr("shiftleft(1L, CAST(shiftrightunsigned(xxhash64(serp_id, doc_id), 32) & 63 AS INT))")
    masks = events.groupBy(bucket).agg(F.bit_or(bit).alias("mask"))
    return (
        impressions.withColumn("bucket", bucket)
        .join(F.broadcast(masks), on="bucket", how="inner")
        .where(F.col("mask").bitwiseAND(bit) != 0)
        .drop("bucket", "mask")
    )


def count_pages(outcomes: Outcomes) -> DataFrame:
    """Pages with a kept impression by `page_mark`."""
    kept = (F.col("bits") == 0) & (F.col("impressions") == 1)
    clicks = outcomes.touched.where(F.col("page_mark") == int(PageMark.CLICKED))
    features = {
        "kept": F.max(kept),
        "clicked": F.max(F.col("page_mark") != 0),
        "nameless": F.max(kept & F.col("nameless")),
        **compare_positions(kept),
    }
    marks = (
        outcomes.plain.unionByName(clicks)
        .groupBy(hash_page())
        .agg(*[feature.alias(name) for name, feature in features.items()])
        .where("kept")
        .select(combine_marks(clicked=F.col("clicked")).alias("page_mark"))
    )
    whole = outcomes.touched.where(F.col("page_mark").bitwiseAND(int(PageMark.PAGE)) != 0).select("page_mark")
    return marks.unionByName(whole).groupBy("page_mark").agg(F.count(F.lit(1)).alias("pages"))
