"""Count kept rows by query, document and position, and dropped rows by rule, in narrow aggregates without a sort."""

import datetime as dt
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.labels.denoise.apply import combine_rules
from pipelines.labels.denoise.nameless import hash_below, person_id
from pipelines.labels.denoise.plain import Outcomes, count_pages
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.denoise.users import to_day
from pipelines.labels.history import History, Outcome, Read
from pipelines.warehouse.checkpoint import Checkpointer

PAIR = ("query_id", "doc_id")
PLACE = ("context", "position", "history", "shuffled")
COUNTS = ("impressions", "clicks", "carts", "purchases")
TALLY = (
    "record", *PAIR, *PLACE, "system", "day", "learned", "page_mark", "bits", "dropped_user", "row",
    *COUNTS, "users", "pages",
)  # fmt: skip
BUCKETS = 50  # of the jackknife
_EPOCH = dt.date(1970, 1, 1)
_ENDLESS = 2**62  # the number of a row after all others


def tally_rows(
    outcomes: Outcomes,
    settings: DenoiseSettings,
    checkpoint: Checkpointer = lambda table: table,
    *,
    history: History | None = None,
    shuffled_systems: Sequence[str] = (),
    inspected_share: float = 1.0,
    learned_days: Sequence[tuple[dt.date, dt.date]] = (),
) -> DataFrame:
    """Kept rows by context × query × document × position, dropped rows by rules and user, with their counts.

    `record` is `rows` for these; `bits` is 0 for kept rows. Further records have the `users` of each pair and the
    `pages` of each `page_mark` (see `PageMark`). `history` is the state that a session model conditions on, else 0;
    `shuffled` marks results of the systems that serve in random order, and `learned` those of `learned_days`, ranges
    with both ends included. `day` is kept for a share of the documents and days, drawn by hash. This table is small,
    and nothing after it reads the log again.
    """
    shuffled = F.col("system").isin(*shuffled_systems) if shuffled_systems else F.lit(False)
    touched = _add_history(outcomes.touched, history)
    rows = (
        outcomes.plain.withColumn("history", F.lit(0))
        .unionByName(touched)
        .withColumns({"user_id": person_id(), "shuffled": shuffled, "day": to_day("ts")})
        .withColumn("learned", _is_within(learned_days))
    )
    dominant = checkpoint(_find_dominant_users(touched, settings))
    capped = _cap_users(rows, dominant, settings)
    parts = [
        _count_rows(_leave_out(rows, dominant).unionByName(capped), inspected_share),
        _count_users(rows),
        count_pages(outcomes).withColumns({"record": F.lit("pages"), "bits": F.lit(0)}),
    ]
    tallied = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
    return tallied.fillna(0, subset=[*COUNTS, "users", "pages"]).select(*TALLY)


def _find_dominant_users(touched: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """The users of pairs that a rule on pairs may drop rows of: it would drop a row after all others."""
    clicks = touched.where((F.col("bits") == 0) & (F.col("clicks") > 0)).withColumn("user_id", person_id())
    last = {"user_rows": F.lit(1), "user_row": F.lit(_ENDLESS)}
    return (
        clicks.groupBy(*PAIR, "user_id")
        .agg(F.sum("clicks").alias("user_clicks"))
        .withColumn("pair_clicks", F.sum("user_clicks").over(Window.partitionBy(*PAIR)))
        .withColumns(last)
        .where(combine_rules("pair", settings) != 0)
        .select(*PAIR, "user_id", "user_clicks", "pair_clicks")
    )


def _leave_out(rows: DataFrame, dominant: DataFrame) -> DataFrame:
    """The rows without the kept ones of dominant users."""
    kept_query = F.when(F.col("bits") == 0, F.col("query_id"))
    named = dominant.select(F.col("query_id").alias("kept_query"), "doc_id", "user_id")
    rows = rows.withColumn("kept_query", kept_query)
    return rows.join(named, on=["kept_query", "doc_id", "user_id"], how="left_anti").drop("kept_query")


def _cap_users(rows: DataFrame, dominant: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """Number the rows of dominant users in the order of a hash, and apply the rules on pairs.

    An impression and its events are one row.
    """
    by_hash = Window.partitionBy(*PAIR, "user_id").orderBy("draw", "serp_id", "position")
    same = [name for name in rows.columns if name not in (*COUNTS, "kind", "page_mark")]
    return (
        rows.where(F.col("bits") == 0)
        .join(dominant, on=[*PAIR, "user_id"], how="inner")
        .groupBy(*same, "user_clicks", "pair_clicks")
        .agg(*[F.sum(name).alias(name) for name in COUNTS])
        .withColumn("draw", F.xxhash64("serp_id"))
        .withColumns(
            {
                "user_row": F.row_number().over(by_hash),
                "user_rows": F.count("*").over(Window.partitionBy(*PAIR, "user_id")),
            }
        )
        .withColumn("bits", combine_rules("pair", settings))
        .withColumns({"kind": F.lit("impression"), "page_mark": F.lit(0)})
        .select(*rows.columns)
    )


def _count_rows(rows: DataFrame, inspected_share: float) -> DataFrame:
    """Kept rows by pair and place, dropped rows by user; one aggregate that needs no sort."""
    kept = F.col("bits") == 0
    inspected = kept & hash_below(inspected_share, *PAIR, "day")
    keys = [F.when(kept, F.col(name)).alias(name) for name in (*PAIR, *PLACE, "system", "learned")]
    return (
        rows.groupBy(
            *keys,
            F.when(inspected, F.col("day")).alias("day"),
            "bits",
            F.when(~kept, F.col("user_id")).alias("dropped_user"),
            "row",
        )
        .agg(*[F.sum(name).alias(name) for name in COUNTS])
        .withColumn("record", F.lit("rows"))
    )


def _count_users(rows: DataFrame) -> DataFrame:
    """The users of each pair, each counted once: on learned days or on others, as a draw of the pages decides."""
    draw = F.xxhash64("serp_id").bitwiseAND(F.lit(-2)).bitwiseOR(F.col("learned").cast("long"))
    return (
        rows.where((F.col("bits") == 0) & (F.col("impressions") == 1))
        .groupBy(*PAIR, F.xxhash64("user_id").alias("person"))
        .agg(F.min(draw).alias("draw"))
        .groupBy(*PAIR, (F.col("draw").bitwiseAND(F.lit(1)) == 1).alias("learned"))
        .agg(F.count(F.lit(1)).alias("users"))
        .withColumns({"record": F.lit("users"), "bits": F.lit(0)})
    )


def _is_within(days: Sequence[tuple[dt.date, dt.date]]) -> Column:
    """Whether the day of a row lies in one of these ranges."""
    ranges = [F.col("day").between((first - _EPOCH).days, (last - _EPOCH).days) for first, last in days]
    return reduce(or_, ranges, F.lit(False))


def _add_history(outcomes: DataFrame, history: History | None) -> DataFrame:
    """Add `history`, the state of each result that an estimator conditions on (see `pipelines.labels.history`)."""
    return outcomes.withColumn("history", F.lit(0) if history is None else _HISTORIES[history]())


def _last_click_above() -> Column:
    above = Window.partitionBy("serp_id").orderBy("position").rangeBetween(Window.unboundedPreceding, -1)
    return F.coalesce(F.max(_clicked_position()).over(above), F.lit(0))


def _read_state() -> Column:
    position, last = F.col("position"), F.max(_clicked_position()).over(Window.partitionBy("serp_id"))
    return (
        F.when(last.isNull(), F.lit(int(Read.NO_CLICK)))
        .when(_clicked_position() == last, F.lit(int(Read.LAST)))
        .when(position <= last, F.lit(int(Read.ABOVE)))
        .otherwise(F.lit(int(Read.BELOW)))
    )


def _clicked_position() -> Column:
    """The position of a result with a click that counts, else null."""
    return F.when((F.col("bits") == 0) & (F.col("clicks") > 0), F.col("position"))


_HISTORIES: dict[History, Callable[[], Column]] = {"last_click": _last_click_above, "read": _read_state}


def select_cells(
    tallied: DataFrame, *, max_position: int, history: History | None = None, outcome: Outcome = "click"
) -> DataFrame:
    """The kept rows by query × document × place, with the jackknife bucket of the query.

    Positions, also those of last clicks, end at `max_position`; `clicks` are those that the outcome counts. The users
    of a pair are in a row without a place.
    """
    has_place = F.col("position").isNotNull()
    deepest = F.when(has_place, F.lit(max_position))
    state = F.when(has_place, F.least("history", deepest)) if history == "last_click" else F.col("history")
    successes = F.when(F.col("history") == int(Read.LAST), F.col("clicks")).otherwise(0)
    return (
        tallied.where((F.col("bits") == 0) & F.col("query_id").isNotNull())
        .withColumn("clicks", F.col("clicks") if outcome == "click" else successes)
        .withColumns({"position": F.when(has_place, F.least("position", deepest)), "history": state})
        .groupBy(*PAIR, *PLACE)
        .agg(*[F.sum(name).alias(name) for name in (*COUNTS, "users")])
        .withColumn("bucket", F.pmod(F.xxhash64(F.lit("jackknife"), "query_id"), F.lit(BUCKETS)).cast("int"))
        .select(*PAIR, *PLACE, "bucket", *COUNTS, "users")
    )
