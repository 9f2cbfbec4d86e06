"""Count kept rows by query, document and position, and dropped rows by rule, in one shuffle and one sort."""

import datetime as dt
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.labels.denoise.apply import combine_rules
from pipelines.labels.denoise.nameless import hash_below, person_id
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.denoise.users import to_day
from pipelines.labels.history import History, Outcome, Read

PAIR = ("query_id", "doc_id")
PLACE = ("context", "position", "history", "shuffled")
ORIGIN = ("system", "day", "learned", "page_mark")
COUNTS = ("impressions", "clicks", "carts", "purchases")
BUCKETS = 50  # of the jackknife
_EPOCH = dt.date(1970, 1, 1)
_SALTS = 16


def tally_rows(
    outcomes: DataFrame,
    settings: DenoiseSettings,
    *,
    history: History | None = None,
    shuffled_systems: Sequence[str] = (),
    inspected_share: float = 1.0,
    learned_days: Sequence[tuple[dt.date, dt.date]] = (),
) -> DataFrame:
    """Kept rows by context × query × document × position, dropped rows by rules and user, with their counts.

    `bits` is 0 for kept rows. `users` counts each user of a pair once, at one position, so that it sums up to the
    users of the pair. `history` is the state that a session model conditions on, else 0; `shuffled` marks results of
    the systems that serve in random order, and `learned` those of `learned_days`, ranges with both ends included. `day`
    is kept for a share of the documents and days, drawn by hash, and `page_mark` counts pages (see `PageMark`). This
    table is small, and nothing after it reads the log again.
    """
    shuffled = F.col("system").isin(*shuffled_systems) if shuffled_systems else F.lit(False)
    marked = _add_history(outcomes, history).withColumns(
        {"shuffled": shuffled, "day": to_day("ts"), "learned": _is_within(learned_days)}
    )
    rows = _salt_dropped(marked, inspected_share)
    kept = F.col("fate") == "kept"
    return (
        _count_user_rows(rows.repartition(*PAIR))
        .withColumn("pair_clicks", F.sum("clicks").over(Window.partitionBy(*PAIR)))
        .withColumn("bits", F.when(kept, combine_rules("pair", settings)).otherwise(F.col("bits")))
        .withColumn("dropped_user", F.when(F.col("bits") != 0, F.col("user_id")))
        .withColumn("users", F.when((F.col("bits") == 0) & (F.col("user_row") == 1), F.col("rows")).otherwise(0))
        .groupBy(*PAIR, *PLACE, *ORIGIN, "bits", "dropped_user", "row")
        .agg(*[F.sum(name).alias(name) for name in (*COUNTS, "users")])
    )


def _count_user_rows(rows: DataFrame) -> DataFrame:
    """Number every user's rows on a pair in the order of a hash, then count rows that are alike to the rules on pairs.

    A user with at most one click on a pair cannot dominate it, so that the id is dropped and far fewer rows remain.
    """
    by_hash = Window.partitionBy("user_of_pair", *PAIR, "user_id").orderBy("draw", "serp_id", "position")
    whole = by_hash.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    features = {
        "user_row": F.row_number().over(by_hash),
        "user_rows": F.count(F.lit(1)).over(whole),
        "user_clicks": F.sum("clicks").over(whole),
    }
    dropped = F.col("bits") != 0
    return (
        # Sorted by a hash first: comparing ids with a common prefix is slow.
        rows.withColumns({"user_of_pair": F.xxhash64(*PAIR, "user_id"), "draw": F.xxhash64("serp_id")})
        .withColumns(features)
        .withColumn("user_id", F.when(dropped | (F.col("user_clicks") > 1), F.col("user_id")))
        .withColumns({name: F.when(~dropped, F.col(name)) for name in features})
        .groupBy(*PAIR, *PLACE, *ORIGIN, "bits", "fate", "row", "user_id", *features)
        .agg(F.count(F.lit(1)).alias("rows"), *[F.sum(name).alias(name) for name in COUNTS])
    )


def _salt_dropped(rows: DataFrame, inspected_share: float) -> DataFrame:
    """Keep only the columns that a row needs, and salt dropped rows: one bot may have millions of them."""
    kept = F.col("bits") == 0
    salt = F.pmod(F.xxhash64("serp_id"), F.lit(_SALTS)).cast("string")
    rows = rows.withColumn("user_id", person_id())
    inspected = kept & hash_below(inspected_share, *PAIR, "day")
    return rows.select(
        F.when(kept, F.col("query_id")).alias("query_id"),
        F.when(kept, F.col("doc_id")).otherwise(F.concat_ws("#", "user_id", salt)).alias("doc_id"),
        "user_id",
        "serp_id",
        *[F.when(kept, F.col(name)).alias(name) for name in (*PLACE, "system", "learned", "page_mark")],
        F.when(inspected, F.col("day")).alias("day"),
        "bits",
        F.when(kept, F.lit("kept")).alias("fate"),
        "row",
        *COUNTS,
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

    Positions, also those of last clicks, end at `max_position`; `clicks` are those that the outcome counts.
    """
    deepest = F.lit(max_position)
    state = F.least("history", deepest) if history == "last_click" else F.col("history")
    successes = F.when(F.col("history") == int(Read.LAST), F.col("clicks")).otherwise(0)
    return (
        tallied.where(F.col("bits") == 0)
        .withColumn("clicks", F.col("clicks") if outcome == "click" else successes)
        .withColumns({"position": F.least("position", deepest), "history": state})
        .groupBy(*PAIR, *PLACE)
        .agg(*[F.sum(name).alias(name) for name in (*COUNTS, "users")])
        .withColumn("bucket", F.pmod(F.xxhash64(F.lit("jackknife"), "query_id"), F.lit(BUCKETS)).cast("int"))
        .select(*PAIR, *PLACE, "bucket", *COUNTS, "users")
    )
