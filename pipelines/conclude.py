"""From the query metrics to conclusions: averages, comparisons, movers, verdicts and readings, published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.aggregate import aggregate
from pipelines.compare import compare, family_of
from pipelines.config import Config
from pipelines.estimate import estimate, plan_of
from pipelines.gate import Verdict, gate_rows, judge, with_verdicts
from pipelines.impute import with_label_errors
from pipelines.movers import changes, with_moves
from pipelines.publish import Attempt
from pipelines.readings import Evidence, Reading, read_all
from pipelines.segments import bounded, with_bands
from udfs.conventions import Conventions
from udfs.registry import Spec
from udfs.statistics.plan import Plan


@dataclass(frozen=True)
class Conclusions:
    """What is said in words: the gate's verdicts and the readings."""

    verdicts: tuple[Verdict, ...]
    readings: tuple[Reading, ...]


def conclude(
    attempt: Attempt,
    query_metrics: DataFrame,
    rankings: DataFrame,
    labels: DataFrame,
    *,
    systems: tuple[str, ...],
    specs: Sequence[Spec],
    config: Config,
    conventions: Conventions,
    rescore: Callable[[DataFrame], DataFrame],
    beside: DataFrame | None = None,
) -> Conclusions:
    """Estimate everything in one pass over the query metrics, and publish what follows from it.

    `rescore` makes query metrics from other labels, for where the labels are uncertain; `beside` holds averages
    that come from elsewhere.
    """
    plan = plan_of(config, systems, specs)
    banded = with_bands(query_metrics, bands=config.bands, wanted=plan.columns)
    how = config.statistics
    cut, _ = bounded(banded, segments=plan.segments, most=how.max_values, many=how.many_values)
    estimates = estimate(cut, plan=plan, cluster=how.cluster)
    if how.label_draws and plan.pairs:
        estimates = with_label_errors(
            estimates, cut, labels, rescore, plan=plan, draws=how.label_draws, max_grade=conventions.max_grade
        )
    estimates = estimates.persist()
    try:
        averages = aggregate(estimates)
        everything = averages if beside is None else averages.unionByName(beside)
        attempt.write("segment_metrics", everything.coalesce(1))
        behaviour = conventions.unjudged == "cut_then_condense"
        verdicts = judge(gate_rows(estimates, config), config, systems, behaviour=behaviour)
        if not plan.pairs:
            return Conclusions(tuple(verdicts), ())
        compared = compare(
            estimates,
            family=family_of(config),
            correction=config.compare.correction,
            confidence=how.confidence,
        )
        comparisons = attempt.write(
            "comparisons", with_verdicts(compared, verdicts, config.compare.baseline).coalesce(1)
        )
        moves = _movers(
            attempt, query_metrics, rankings, labels, plan=plan, listed=specs, config=config, conventions=conventions
        )
        evidence = Evidence(
            comparisons=_rows(
                comparisons.where(F.col("segment").isin("all", *[s[0] for s in plan.segments if len(s) == 1]))
            ),
            changes=_rows(moves) if moves is not None else (),
            averages=_rows(estimates.where("baseline IS NULL AND segment = 'all'")),
            relevant=_mean_relevant(query_metrics),
            behaviour=behaviour,
            config=config,
        )
        return Conclusions(tuple(verdicts), tuple(read_all(evidence)))
    finally:
        estimates.unpersist()


def headline(config: Config, specs: Sequence[Spec]) -> tuple[Spec, ...]:
    """The metrics whose movers are kept: the gate's, or the first where there is no gate."""
    gated = {condition.metric for condition in config.gate}
    return tuple(spec for spec in specs if spec.name in gated) or tuple(specs[:1])


def _movers(
    attempt: Attempt,
    query_metrics: DataFrame,
    rankings: DataFrame,
    labels: DataFrame,
    *,
    plan: Plan,
    listed: Sequence[Spec],
    config: Config,
    conventions: Conventions,
) -> DataFrame | None:
    if not config.compare.movers:
        return None
    specs = headline(config, listed)
    changed = changes(query_metrics, pairs=plan.pairs, specs=specs, most=config.compare.movers).persist()
    try:
        moved = with_moves(changed, rankings, labels, specs=specs, conventions=conventions)
        return attempt.write("query_changes", moved.coalesce(1))
    finally:
        changed.unpersist()


def _mean_relevant(query_metrics: DataFrame) -> float:
    """Relevant documents per query that has any."""
    found = query_metrics.where("relevant > 0").agg(F.avg("relevant")).first()
    return float(found[0]) if found is not None and found[0] is not None else 0.0


def _rows(table: DataFrame) -> tuple[dict[str, object], ...]:
    return tuple(row.asDict() for row in table.collect())
