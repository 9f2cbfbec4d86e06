"""Estimates of every system and pair in every segment, in one pass over the query metrics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config import Config
from udfs.registry import Spec
from udfs.statistics.finish import ESTIMATES_DDL, finish
from udfs.statistics.frame import NUMBERS, QUERY, UNIT
from udfs.statistics.partial import PARTIALS_DDL, merge_partials, partial_sums
from udfs.statistics.plan import Plan
from udfs.worker import settled

# Partials are few, however many queries there are: the usual hundreds of partitions would cost more to start.
MERGERS = 4


def plan_of(config: Config, systems: Sequence[str], specs: Sequence[Spec]) -> Plan:
    """What this configuration wants to know of these systems."""
    how = config.statistics
    least = config.min_judged
    return Plan(
        systems=tuple(systems),
        metrics=tuple(spec.key for spec in specs),
        pooled=tuple(spec.key for spec in specs if spec.metric.pool is not None),
        segments=config.segments,
        pairs=pairs_of(config, systems),
        judged=tuple(config.judged_key(spec) if least is not None else None for spec in specs),
        min_judged=least or 0.0,
        clustered=how.cluster is not None,
        confidence=how.confidence,
        bootstrap=how.replicates if how.interval == "bootstrap" or "bootstrap" in how.tests else 0,
        percentiles=how.interval == "bootstrap",
        randomisation=how.replicates if "randomisation" in how.tests else 0,
        seed=how.seed,
    )


def pairs_of(config: Config, systems: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Baseline and candidate of every comparison."""
    baseline = config.compare.baseline
    first = [] if baseline is None else [baseline]
    ordered = [*first, *[system for system in systems if system != baseline]]
    every = combinations(ordered, 2)
    return tuple(pair for pair in every if config.compare.pairs == "all" or pair[0] == baseline)


def estimate(query_metrics: DataFrame, *, plan: Plan, cluster: str | None = None, scattered: bool = False) -> DataFrame:
    """One row per system or pair, segment, value and metric; see `udfs.statistics.finish` for its columns.

    Rows of one query mostly lie together as they were scored, and are summed where they lie. Where they are
    `scattered`, as when systems were scored apart, they are brought together first; and with a cluster those of a
    cluster, which is one observation.
    """
    query = F.xxhash64("query_id")
    keys = [query.alias(QUERY)]
    if cluster:  # a query without a value of it is a cluster of its own: xxhash64 of null would put all in one
        keys.append(F.when(F.col(cluster).isNull(), query).otherwise(F.xxhash64(cluster)).alias(UNIT))
    rows = query_metrics.select(*keys, "system", "weight", *plan.columns, F.array(*plan.numbers).alias(NUMBERS))
    whole = cluster is not None or scattered
    if whole:
        rows = rows.repartition(UNIT if cluster else QUERY)
    partials = rows.mapInArrow(settled(partial_sums(plan, whole=whole)), PARTIALS_DDL)
    if not plan.bootstrap and not plan.randomisation:  # then partials are small, and one task adds them up
        return partials.repartition(1).mapInArrow(settled(finish(plan)), ESTIMATES_DDL)
    merged = partials.repartition(MERGERS, "route").mapInArrow(settled(merge_partials(plan)), PARTIALS_DDL)
    return merged.repartition(MERGERS, "cut", "value").mapInArrow(settled(finish(plan)), ESTIMATES_DDL)
