"""Opinions in the prior: the levels of their values, and how much narrower they make labels.

Levels are chosen from values of the pool, a bounded sample of them by hash, so that they do not depend on partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import sqrt

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.nameless import hash_below
from udfs.posterior.factors import FactorPlan
from udfs.posterior.fit import Prior
from udfs.posterior.opinions import OpinionGain, OpinionScale, choose_scale
from udfs.spark.prior import SPREAD_DDL, sum_spread
from udfs.spark.worker import run_in_worker

SAMPLE = 20_000  # values of a column that its levels are chosen from
_DOCUMENTS = 200_000  # of the pool, on which labels with and without an opinion are compared
_PREFIX = "opinions."  # of a factor, so that no system has its name
_PAIR = ("query_id", "doc_id")


def select_opinions(opinions: DataFrame) -> DataFrame:
    """The opinions with numbered columns, as the pool has them."""
    return opinions.select(
        *_PAIR, *[F.col(name).alias(name_column(place)) for place, name in enumerate(list_opinions(opinions))]
    )


def list_opinions(opinions: DataFrame | None) -> list[str]:
    """The columns beside the key."""
    return [] if opinions is None else [name for name in opinions.columns if name not in _PAIR]


def name_column(place: int) -> str:
    """The column of the pool for an opinion."""
    return f"opinion_{place}"


def choose_scales(pool: DataFrame, opinions: Sequence[str]) -> tuple[OpinionScale, ...]:
    """The scale of every opinion, by the values of documents of the pool; one Spark job counts, one samples them."""
    if not opinions:
        return ()
    columns = [name_column(place) for place in range(len(opinions))]
    counted = pool.agg(*[F.count(column).alias(column) for column in columns]).first()
    assert counted is not None  # an aggregate over all rows has one
    sampled = {column: hash_below(SAMPLE / max(counted[column], 1), *_PAIR) for column in columns}
    values = [F.when(condition, F.col(column)).alias(column) for column, condition in sampled.items()]
    has_value = [F.col(column).isNotNull() & condition for column, condition in sampled.items()]
    sample = pool.where(reduce(Column.__or__, has_value)).select(*values).toArrow()
    return tuple(choose_scale(name, sample[column]) for name, column in zip(opinions, columns, strict=True))


def cast_numbers(pool: DataFrame, scales: Sequence[OpinionScale]) -> DataFrame:
    """The pool with numeric opinions as numbers; text that is no number becomes null."""
    numeric = [name_column(place) for place, scale in enumerate(scales) if scale.numeric]
    return pool.withColumns({column: F.trim(column).try_cast("double") for column in numeric})


def add_opinions(plan: FactorPlan, scales: Sequence[OpinionScale]) -> FactorPlan:
    """The plan with a factor per opinion."""
    return replace(plan, opinions=tuple(_PREFIX + scale.column for scale in scales))


def list_subsets(plan: FactorPlan) -> tuple[tuple[str, ...], ...]:
    """The opinions that the prior is fitted without, to see what they add: all, and each of several."""
    if len(plan.opinions) < 2:
        return (plan.opinions,) if plan.opinions else ()
    return (plan.opinions, *((name,) for name in plan.opinions))


def name_levels(scales: Sequence[OpinionScale]) -> dict[str, tuple[str, ...]]:
    """By factor, the names of the levels of an opinion."""
    return {_PREFIX + scale.column: scale.levels for scale in scales}


def measure_gains(
    pool: DataFrame, prior: Prior, without: Mapping[tuple[str, ...], Prior], scales: Sequence[OpinionScale]
) -> tuple[OpinionGain, ...]:
    """What the opinions add: the spread of labels with all of them, against priors `without` some of them.

    The spread is the mean of (sd/m_q)² over documents of the pool that nobody graded, about 200,000 of whole queries.
    """
    if not without:
        return ()
    rows = pool.count()
    sample = pool.where(hash_below(_DOCUMENTS / max(rows, 1), "query_id")).repartition("query_id")
    sums = sample.mapInArrow(run_in_worker(sum_spread(prior, without, scales)), SPREAD_DDL)
    totals = {row["subset"]: row for row in sums.groupBy("subset").agg(*_sum_columns()).collect()}
    gains = []
    for number, subset in enumerate(without, start=1):
        full, other = totals.get(0), totals.get(number)
        if full is None or other is None or not other["variance"]:
            continue
        gains.append(
            OpinionGain(
                columns=tuple(name.removeprefix(_PREFIX) for name in subset),
                narrowing=1.0 - sqrt(full["variance"] / other["variance"]),
                covered=other["covered"] / other["documents"],
            )
        )
    return tuple(gains)


def _sum_columns() -> list[Column]:
    return [F.sum(name).alias(name) for name in ("documents", "covered", "variance")]
