"""Recognise user ids that name nobody: missing ones, placeholders, and an id that half of all pages share.

Rules on users step aside for them, each of their pages counts as one person, and an event without a page cannot be
attributed.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PLACEHOLDERS = ("", "anonymous", "anon", "guest", "unknown", "none", "null", "nan", "undefined", "0", "-1", "-")
SHARED_PAGES = 0.5  # an id with this share of the pages is no person
ENOUGH_PAGES = 50  # fewest pages of a log in which an id is compared with the others
_INSPECTED = 1_000_000  # impressions; larger logs are sampled
_HASHES = 1 << 20


@dataclass(frozen=True)
class SharedUser:
    """A user id that stands for many people, and its share of the pages."""

    user_id: str
    share: float


def choose_share(impressions: int | None) -> float:
    """The share of a log to inspect: all of it up to a million impressions, about a million of a larger one."""
    return min(1.0, _INSPECTED / max(impressions or 0, 1))


def hash_below(share: float, *columns: str) -> Column:
    """Whether the hash of the columns falls into a share of all hashes."""
    return F.lit(True) if share >= 1 else draw_number(*columns) < limit_draws(share)


def draw_number(*columns: str) -> Column:
    """The hash of the columns as a number, which is below `limit_draws` for a share of them."""
    return F.pmod(F.xxhash64(F.lit("inspect"), *columns), F.lit(_HASHES)).cast("int")


def limit_draws(share: float) -> int:
    """The number that the draws of a share are below."""
    return _HASHES if share >= 1 else round(share * _HASHES)


def find_shared_user(visits: DataFrame, *, share: float = 1.0) -> SharedUser | None:
    """Find the id that has half of the pages or more, of at least 50 pages. Runs a small Spark job.

    `visits` are those of `select_visits` in `denoise.users`.
    """
    pages = (
        visits.where(hash_below(share, "serp_id"))
        .select("user_id", "serp_id")
        .distinct()
        .groupBy(F.when(~_is_placeholder(), F.col("user_id")).alias("user_id"))
        .agg(F.count(F.lit(1)).alias("pages"))
    )
    largest = F.max(F.when(F.col("user_id").isNotNull(), F.struct("pages", "user_id")))
    row = pages.agg(F.sum("pages").alias("total"), largest.alias("largest")).first()
    if row is None or row.largest is None or row.total < ENOUGH_PAGES:
        return None
    of_all = row.largest.pages / row.total
    return SharedUser(row.largest.user_id, of_all) if of_all >= SHARED_PAGES else None


def mark_nameless(table: DataFrame, shared: SharedUser | None = None) -> DataFrame:
    """Add `nameless`: whether the user id names nobody."""
    nameless = _is_placeholder() if shared is None else _is_placeholder() | (F.col("user_id") == shared.user_id)
    return table.withColumn("nameless", nameless)


def person_id(page: Column | str = "serp_id") -> Column:
    """The user, or the page where the user is nameless."""
    return F.when(F.col("nameless"), F.concat(F.lit("page:"), page)).otherwise(F.col("user_id"))


def _is_placeholder() -> Column:
    """Whether the id is missing or a placeholder in any case.

    By a regular expression on short ids: the first `lower` of a session loads Unicode's tables, which takes seconds.
    """
    text = F.trim("user_id")
    is_short = F.length(text) <= max(map(len, PLACEHOLDERS))
    return F.col("user_id").isNull() | (is_short & text.rlike(rf"(?i)\A(?:{'|'.join(PLACEHOLDERS)})\z"))
