"""The pool: every document that a query's posterior is about, with its evidence and its rank in every system.

It holds what the log showed, what people judged, and the top of every compared list. Documents that nobody was shown
have no evidence; what is known of them are their ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from udfs.conventions import Conventions
from udfs.posterior.factors import FactorPlan
from udfs.posterior.fit import GRID
from udfs.spark.pool import EVIDENCE, FIXED, FLOOR, LIST, OPINION, POOL_DDL, PoolRequest, collect_pool
from udfs.spark.worker import run_in_worker

LOG = "(log)"  # the serving system of a log that does not name its systems
MOST_SERVING = 5  # systems with the most traffic; every further one adds a factor per system
_PAIR = ("query_id", "doc_id")


@dataclass(frozen=True)
class LogEvidence:
    """What a log says about its documents, beyond the published labels.

    Where compared systems learned from some of its days, but not from all, it is what the other days say.
    """

    pairs: DataFrame  # query_id, doc_id, clicks_due, examinations, depth
    positions: DataFrame  # system, query_id, doc_id, position: the usual position in a system
    traffic: DataFrame  # system, impressions
    exponent: DataFrame  # one row, exponent_sd: how far the curve may be off, as a power of the position
    promoted: DataFrame | None = None  # labels of these days alone, whose promotions count; None: the published ones
    learned_share: float = 0.0  # of the impressions, on days that compared systems learned from


def measure_positions(tallied: DataFrame) -> DataFrame:
    """Per system, query and document the usual position, the rounded mean."""
    mean = F.sum(F.col("position") * F.col("impressions")) / F.sum("impressions")
    return _select_kept(tallied).groupBy("system", *_PAIR).agg(F.round(mean).cast("int").alias("position"))


def measure_traffic(tallied: DataFrame) -> DataFrame:
    """Per system the impressions."""
    return _select_kept(tallied).groupBy("system").agg(F.sum("impressions").alias("impressions"))


def _select_kept(tallied: DataFrame) -> DataFrame:
    """The kept impressions, each with a system."""
    kept = tallied.where((F.col("bits") == 0) & (F.col("impressions") > 0))
    return kept.withColumn("system", F.coalesce("system", F.lit(LOG)))


def plan_factors(traffic: DataFrame, systems: Sequence[str]) -> FactorPlan:
    """The factors of the prior: the systems that served, largest traffic first, then the compared ones that did not."""
    serving = [row["system"] for row in traffic.orderBy(F.desc("impressions"), "system").limit(MOST_SERVING).collect()]
    return FactorPlan(serving=tuple(serving), compared=tuple(name for name in systems if name not in serving))


def build_pool(
    log: LogEvidence,
    labels: DataFrame,
    lists: DataFrame,
    plan: FactorPlan,
    *,
    conventions: Conventions,
    top: int,
    opinions: DataFrame | None = None,
) -> DataFrame:
    """One row per query and document of the pool, all rows of a query in one partition; `add_rates` adds their rates.

    Of the compared `lists`, placed as they are scored, the first `top` belong to the pool; a column `list` says which
    rows are one list, where a query has several of a system. A document's ranks are `ABSENT` where a system ranked or
    served the query without it, and `UNKNOWN` where it did neither. The rank in a serving system is the usual position,
    and for queries that it never served that of its list. `query_clicks` and `query_examinations` are those of all
    documents. Columns of `opinions` beside the key come along; of a pair with several rows the largest value.
    """
    columns = [] if opinions is None else [name for name in opinions.columns if name not in _PAIR]
    by_list = [name for name in lists.columns if name == LIST]
    parts = [
        log.pairs.select(
            *_PAIR,
            F.lit(EVIDENCE).alias("kind"),
            _round_to_grid("clicks_due").alias("a"),
            _round_to_grid("examinations").alias("b"),
            _round_to_grid("depth").alias("c"),
        ),
        *_select_grades(labels, labels if log.promoted is None else log.promoted),
        log.positions.select(*_PAIR, _find_slot(plan.serving, 0).alias("kind"), F.col("position").alias("rank")),
        lists.select(
            *_PAIR,
            _find_slot((*plan.compared, *plan.serving), len(plan.serving)).alias("kind"),
            "rank",
            F.col("score").alias("a"),
            *by_list,
        ),
    ]
    if opinions is not None:
        largest = opinions.groupBy(*_PAIR).agg(*[F.max(name).alias(name) for name in columns])
        parts.append(largest.withColumn("kind", F.lit(OPINION)))
    stream = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), parts)
    request = PoolRequest(
        serving=len(plan.serving),
        compared=len(plan.compared),
        top=top,
        conventions=conventions,
        opinions=tuple(columns),
    )
    schema = ", ".join([POOL_DDL, *[f"{name} {stream.schema[name].dataType.simpleString()}" for name in columns]])
    rows = stream.where(F.col("kind").isNotNull()).repartition("query_id")
    return rows.mapInArrow(run_in_worker(collect_pool(request)), schema)


def add_rates(pool: DataFrame, query_prior: float) -> DataFrame:
    """The pool with the rate of every query, m_q = (x_q + p·m)/(E_q + p) with p = `query_prior`."""
    totals = pool.agg(F.try_divide(F.sum("clicks"), F.sum("examinations")).alias("overall")).first()
    overall = None if totals is None else totals["overall"]
    clicks, examinations = F.col("query_clicks"), F.col("query_examinations")
    rate = (clicks + query_prior * F.lit(overall).cast("double")) / (examinations + query_prior)
    return pool.withColumn("rate", rate).drop("query_clicks", "query_examinations")


def _select_grades(labels: DataFrame, promotions: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The grades by people, and the least grades by purchases and carts."""
    grade = F.col("grade").cast("double")
    judged = labels.where(F.col("source") == "human").select(*_PAIR, F.lit(FIXED).alias("kind"), grade.alias("a"))
    promoted = promotions.where(F.col("reason").startswith("promoted"))
    return judged, promoted.select(*_PAIR, F.lit(FLOOR).alias("kind"), grade.alias("a"))


def _round_to_grid(column: str) -> Column:
    """A number as a multiple of 1/GRID, so that sums are the same in any order of the rows."""
    return F.rint(F.col(column) * GRID) / GRID


def _find_slot(systems: Sequence[str], start: int) -> Column:
    """The place of a row's system among the columns of ranks; null for other systems."""
    slot = F.lit(None).cast("int")
    for place, system in enumerate(systems, start):
        slot = F.when(F.col("system") == system, F.lit(place)).otherwise(slot)
    return slot
