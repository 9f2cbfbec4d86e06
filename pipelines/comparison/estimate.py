"""Estimates of every system and pair in every segment, in one pass over the query metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config.model import Config
from schemas.outputs import SEGMENT_METRICS
from udfs.compute import varies_by_grades
from udfs.draws import LabelDraws, PosteriorDraws
from udfs.posterior.fit import POSTERIOR
from udfs.registry import MetricSpec
from udfs.spark.worker import run_in_worker
from udfs.statistics.counting import unseen_column
from udfs.statistics.finish import ESTIMATES_DDL, finish_estimates
from udfs.statistics.frame import DRAWS, NUMBERS, QUERY, UNIT
from udfs.statistics.metric_files import read_metric_files, sum_files
from udfs.statistics.partial import PARTIALS_DDL, merge_partials, partial_sums
from udfs.statistics.plan import Plan
from udfs.tabulate import DRAWS as DRAWS_COLUMN

# Partials are few, however many queries there are: hundreds of partitions would cost more to start than to merge.
MERGE_PARTITIONS = 4


def build_plan(
    config: Config, systems: Sequence[str], specs: Sequence[MetricSpec], draws: LabelDraws | None = None
) -> Plan:
    """The estimates that this configuration asks for; `draws` are those in the query metrics."""
    settings = config.statistics
    min_judged = config.min_judged
    plan = Plan(
        systems=tuple(systems),
        metrics=tuple(spec.key for spec in specs),
        names=tuple(spec.name for spec in specs),
        pooled=tuple(spec.key for spec in specs if spec.metric.pool is not None),
        segments=config.query_segments,
        pairs=list_pairs(config, systems),
        judged=tuple(config.judged_key(spec) if min_judged is not None else None for spec in specs),
        min_judged=min_judged or 0.0,
        clustered=settings.cluster is not None,
        confidence=settings.confidence,
        bootstrap=settings.replicates if settings.interval == "bootstrap" or "bootstrap" in settings.tests else 0,
        percentiles=settings.interval == "bootstrap",
        randomisation=settings.replicates if "randomisation" in settings.tests else 0,
        seed=settings.seed,
    )
    return plan if draws is None else _add_draws(plan, config, specs, draws)


def _add_draws(plan: Plan, config: Config, specs: Sequence[MetricSpec], draws: LabelDraws) -> Plan:
    drawn = [spec for spec in specs if spec.metric.scope == "list"]
    plan = replace(
        plan,
        draw_sets=draws.sets,
        draw_metrics=tuple(spec.key for spec in drawn),
        constant_metrics=tuple(spec.key for spec in drawn if not varies_by_grades(spec)),
    )
    if not isinstance(draws, PosteriorDraws):
        return plan
    return replace(
        plan,
        not_vouched=tuple(name for name in draws.prior.plan.compared if not config.vouches_for(name)),
        unseen=tuple(unseen_column(spec, plan.metrics) for spec in specs),
        exponents=tuple(map(float, draws.prior.select_set(POSTERIOR).exponent)),
    )


def list_pairs(config: Config, systems: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Baseline and candidate of every comparison."""
    baseline = config.compare.baseline
    first = [] if baseline is None else [baseline]
    ordered = [*first, *[system for system in systems if system != baseline]]
    return tuple(pair for pair in combinations(ordered, 2) if config.compare.pairs == "all" or pair[0] == baseline)


def estimate_metrics(
    query_metrics: DataFrame,
    *,
    plan: Plan,
    cluster: str | None = None,
    scattered: bool = False,
    files: Sequence[str] = (),
) -> DataFrame:
    """One row per system or pair, segment, value and metric; see `udfs.statistics.finish` for its columns.

    With a plan for draws, the query metrics have them in `draws`, and errors include that of the labels.

    Rows of one query are mostly in one partition, as they were scored, and are summed there. Where they are
    `scattered`, as when systems were scored separately, they are shuffled by query first; with a cluster, which is one
    observation, by cluster.

    With `files` of the same rows, workers read these where that is enough.
    """
    whole = cluster is not None or scattered
    if files and not (whole or plan.clustered or plan.draw_sets):
        partials = read_metric_files(query_metrics.sparkSession, files, sum_files(files, plan), PARTIALS_DDL)
    else:
        rows = _select_rows(query_metrics, plan, cluster)
        if whole:
            rows = rows.repartition(UNIT if cluster else QUERY)
        partials = rows.mapInArrow(run_in_worker(partial_sums(plan, whole=whole)), PARTIALS_DDL)
    finish = run_in_worker(finish_estimates(plan))
    if not (plan.bootstrap or plan.randomisation or plan.draw_sets):  # then partials are small: one task merges them
        return partials.repartition(1).mapInArrow(finish, ESTIMATES_DDL)
    by_route = partials.repartition(MERGE_PARTITIONS, "route")
    merged = by_route.mapInArrow(run_in_worker(merge_partials(plan)), PARTIALS_DDL)
    return merged.repartition(MERGE_PARTITIONS, "cut", "value").mapInArrow(finish, ESTIMATES_DDL)


def _select_rows(query_metrics: DataFrame, plan: Plan, cluster: str | None) -> DataFrame:
    """The rows with the columns that partial sums read."""
    query = F.xxhash64("query_id")
    keys = [query.alias(QUERY)]
    if cluster:  # a query without a cluster is one of its own: xxhash64 of null would put all of them in one
        keys.append(F.when(F.col(cluster).isNull(), query).otherwise(F.xxhash64(cluster)).alias(UNIT))
    elif plan.clustered:
        keys.append(query.alias(UNIT))
    draws = [F.col(DRAWS_COLUMN).alias(DRAWS)] if plan.draw_sets else []
    numbers = F.array(*plan.numbers).alias(NUMBERS)
    return query_metrics.select(*keys, "system", "weight", *plan.columns, numbers, *draws)


def select_segment_metrics(estimates: DataFrame) -> DataFrame:
    """The estimates of single systems as `segment_metrics`."""
    averages = estimates.where(F.col("baseline").isNull())
    return averages.withColumnRenamed("candidate", "system").select(*SEGMENT_METRICS.names)
