"""The pool: every document that a query's posterior is about, with its evidence and its rank in every system.

It holds what the log showed, what people judged, and the top of every compared list. Documents that nobody was shown
have no evidence; what is known of them are their ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from udfs.posterior.factors import ABSENT, UNKNOWN, FactorPlan
from udfs.posterior.fit import GRID

LOG = "(log)"  # the serving system of a log that does not name its systems
MOST_SERVING = 5  # systems with the most traffic; every further one adds a factor per system
POOL = ("query_id", "doc_id", "clicks", "examinations", "depth", "rate", "floor", "fixed", "ranks")
_PAIR = ("query_id", "doc_id")


@dataclass(frozen=True)
class LogEvidence:
    """What a log says about its documents, beyond the published labels.

    Where compared systems learned from some of its days, but not from all, it is what the other days say.
    """

    pairs: DataFrame  # query_id, doc_id, clicks_due, examinations, depth
    positions: DataFrame  # system, query_id, doc_id, impressions, position: the usual position in a system
    exponent: DataFrame  # one row, exponent_sd: how far the curve may be off, as a power of the position
    promoted: DataFrame | None = None  # labels of these days alone, whose promotions count; None: the published ones
    learned_share: float = 0.0  # of the impressions, on days that compared systems learned from


def measure_positions(tallied: DataFrame) -> DataFrame:
    """Per system, query and document the impressions and the usual position, the rounded mean."""
    mean = F.sum(F.col("position") * F.col("impressions")) / F.sum("impressions")
    return (
        tallied.where((F.col("bits") == 0) & (F.col("impressions") > 0))
        .groupBy(F.coalesce("system", F.lit(LOG)).alias("system"), *_PAIR)
        .agg(F.sum("impressions").alias("impressions"), F.round(mean).cast("int").alias("position"))
    )


def plan_factors(positions: DataFrame, systems: Sequence[str]) -> FactorPlan:
    """The factors of the prior: the systems that served, largest traffic first, then the compared ones that did not."""
    traffic = positions.groupBy("system").agg(F.sum("impressions").alias("impressions"))
    serving = [row["system"] for row in traffic.orderBy(F.desc("impressions"), "system").limit(MOST_SERVING).collect()]
    return FactorPlan(serving=tuple(serving), compared=tuple(name for name in systems if name not in serving))


def build_pool(
    log: LogEvidence,
    labels: DataFrame,
    placed: DataFrame,
    plan: FactorPlan,
    *,
    top: int,
    query_prior: float,
    opinions: DataFrame | None = None,
) -> DataFrame:
    """One row per query and document of the pool, all rows of a query in one partition.

    `placed` are the compared lists at their scored ranks, of which the first `top` belong to the pool. The rate of a
    query is m_q = (x_q + p·m)/(E_q + p) with p = `query_prior`; its documents' ranks are `ABSENT` where a system
    ranked or served the query without them, and `UNKNOWN` where it did neither. The rank in a serving system is the
    usual position, and for queries that it never served that of its list. Columns of `opinions` beside the
    key come along for documents of the pool; of a pair with several rows the largest value.
    """
    evidence = log.pairs.select(
        *_PAIR,
        _round_to_grid("clicks_due").alias("clicks"),
        _round_to_grid("examinations").alias("examinations"),
        _round_to_grid("depth").alias("depth"),
    )
    parts = [
        evidence,
        *_select_grades(labels, labels if log.promoted is None else log.promoted),
        log.positions.select(*_PAIR, _find_slot(plan.serving, 0).alias("slot"), F.col("position").alias("rank")),
        placed.select(
            *_PAIR,
            _find_slot((*plan.compared, *plan.serving), len(plan.serving)).alias("slot"),
            "rank",
            (F.col("rank") <= top).alias("listed"),
        ),
    ]
    if opinions is not None:
        parts.append(opinions)
    columns = [] if opinions is None else [name for name in opinions.columns if name not in _PAIR]
    rows = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), parts)
    slots = range(len(plan.systems) + len(plan.serving))  # positions and lists of serving systems are apart
    pooled = (
        rows.repartition("query_id")
        .groupBy(*_PAIR)
        .agg(
            *[F.coalesce(F.sum(name), F.lit(0.0)).alias(name) for name in ("clicks", "examinations", "depth")],
            F.max("fixed").alias("fixed"),
            F.coalesce(F.max("floor"), F.lit(0.0)).alias("floor"),
            F.coalesce(F.bool_or("listed"), F.lit(False)).alias("listed"),
            *[F.min(F.when(F.col("slot") == slot, F.col("rank"))).alias(f"rank_{slot}") for slot in slots],
            *[F.max(name).alias(name) for name in columns],
        )
        .where(F.col("listed") | (F.col("examinations") > 0) | F.col("fixed").isNotNull())
    )
    overall = evidence.agg((F.sum("clicks") / F.sum("examinations")).alias("overall"))
    query = Window.partitionBy("query_id")
    clicks, examinations = F.sum("clicks").over(query), F.sum("examinations").over(query)
    rate = (clicks + query_prior * F.col("overall")) / (examinations + query_prior)
    rates = {"rate": rate, "ranks": _code_ranks(plan, query)}
    return pooled.crossJoin(F.broadcast(overall)).withColumns(rates).select(*POOL, *columns)


def _select_grades(labels: DataFrame, promotions: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The grades by people, and the least grades by purchases and carts."""
    grade = F.col("grade").cast("double")
    judged = labels.where(F.col("source") == "human").select(*_PAIR, grade.alias("fixed"))
    promoted = promotions.where(F.col("reason").startswith("promoted")).select(*_PAIR, grade.alias("floor"))
    return judged, promoted


def _round_to_grid(column: str) -> Column:
    """A number as a multiple of 1/GRID, so that sums are the same in any order of the rows."""
    return F.rint(F.col(column) * GRID) / GRID


def _find_slot(systems: Sequence[str], start: int) -> Column:
    """The place of a row's system among the columns of ranks; null for other systems."""
    slot = F.lit(None).cast("int")
    for place, system in enumerate(systems, start):
        slot = F.when(F.col("system") == system, F.lit(place)).otherwise(slot)
    return slot


def _code_ranks(plan: FactorPlan, query: object) -> Column:
    """The ranks of a document in all systems of the plan."""
    serving, systems = len(plan.serving), len(plan.systems)
    positions = [_code_position(slot, systems + slot, query) for slot in range(serving)]
    lists = [F.coalesce(F.col(f"rank_{slot}"), F.lit(ABSENT)) for slot in range(serving, systems)]
    return F.array(*positions, *lists)


def _code_position(shown: int, listed: int, query: object) -> Column:
    """The rank in a serving system: by what it showed, or else by its list."""
    rank = F.lit(UNKNOWN)
    for slot in (listed, shown):
        column = F.col(f"rank_{slot}")
        has_query = F.max(column).over(query).isNotNull()  # type: ignore[arg-type]
        rank = F.when(has_query, F.coalesce(column, F.lit(ABSENT))).otherwise(rank)
    return rank
