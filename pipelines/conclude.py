"""From the query metrics to conclusions: averages, comparisons, movers, verdicts and readings, published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.aggregate import aggregate
from pipelines.compare import compare, family_of
from pipelines.config import Config, Span
from pipelines.estimate import estimate, plan_of
from pipelines.gate import Row, Verdict, gate_rows, judge, with_verdicts
from pipelines.impute import with_label_errors
from pipelines.movers import changes, with_moves
from pipelines.publish import Attempt
from pipelines.readings import Evidence, Reading, read_all
from pipelines.rescore import Scorer
from pipelines.segments import bounded, with_bands
from pipelines.sensitivity import RULE, beside_the_rule, estimate_otherwise, ways_of
from schemas.outputs import SENSITIVITY
from udfs.registry import Spec
from udfs.statistics.plan import Plan


@dataclass(frozen=True)
class Conclusions:
    """What is said in words: the gate's verdicts and the readings."""

    verdicts: tuple[Verdict, ...]
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Scored:
    """What was scored, and what it was scored from.

    `scorer` made the query metrics and can score the same lists again, for where labels or conventions are uncertain;
    `redraw` draws such labels; `beside` holds averages that do not come from the query metrics; `goal` labels by the
    goal alone; `days` are those of the labels.
    """

    query_metrics: DataFrame
    labels: DataFrame
    scorer: Scorer
    redraw: Callable[[int], DataFrame]
    beside: DataFrame | None = None
    goal: DataFrame | None = None
    days: Span | None = None


def conclude(attempt: Attempt, scored: Scored, config: Config) -> Conclusions:
    """Estimate everything in one pass over the query metrics, and publish what follows from it."""
    plan = plan_of(config, scored.scorer.systems, scored.scorer.specs)
    estimates = attempt.hold(_estimates(scored, plan, config))
    averages = aggregate(estimates)
    everything = averages if scored.beside is None else averages.unionByName(scored.beside)
    attempt.write("segment_metrics", everything.coalesce(1))
    gated = gate_rows(estimates, config)
    verdicts = judge(gated, config, scored.scorer.systems, behaviour=config.behaviour)
    if not plan.pairs:
        return Conclusions(tuple(verdicts), ())
    compared = compare(
        estimates,
        family=family_of(config),
        correction=config.compare.correction,
        confidence=config.statistics.confidence,
    )
    judged = with_verdicts(compared, verdicts, config.compare.baseline)
    comparisons = attempt.write("comparisons", judged.coalesce(1))
    moves = _movers(attempt, scored, plan, config)
    shown = ["all", *[columns[0] for columns in plan.segments if len(columns) == 1]]
    told = _rows(comparisons.where(F.col("segment").isin(*shown)))
    evidence = Evidence(
        comparisons=told,
        changes=_rows(moves) if moves is not None else (),
        relevant=_mean_relevant(scored.query_metrics),
        behaviour=config.behaviour,
        config=config,
        goal=_by_goal(scored, plan, config),
        sensitivity=_sensitivity(attempt, scored, config, told, gated),
        days=scored.days,
    )
    return Conclusions(tuple(verdicts), tuple(read_all(evidence)))


def headline(config: Config, specs: Sequence[Spec]) -> tuple[Spec, ...]:
    """The metrics whose movers are kept: the gate's, or the first where there is no gate."""
    gated = {condition.metric for condition in config.gate}
    return tuple(spec for spec in specs if spec.name in gated) or tuple(specs[:1])


def _estimates(scored: Scored, plan: Plan, config: Config) -> DataFrame:
    how = config.statistics
    banded = with_bands(scored.query_metrics, bands=config.bands, wanted=plan.columns)
    cut = bounded(banded, segments=plan.segments, most=how.max_values, many=how.many_values)
    estimates = estimate(cut, plan=plan, cluster=how.cluster)
    if not how.label_draws or not plan.pairs:
        return estimates
    return with_label_errors(estimates, cut, scored.redraw, scored.scorer, plan=plan, draws=how.label_draws)


def _by_goal(scored: Scored, plan: Plan, config: Config) -> tuple[dict[str, object], ...]:
    """The comparisons over all queries on labels by the goal alone, where these are asked for."""
    if scored.goal is None:
        return ()
    whole = replace(plan, segments=(), bootstrap=0, percentiles=False, randomisation=0)
    estimates = estimate(scored.scorer(scored.goal), plan=whole, cluster=config.statistics.cluster)
    return _rows(estimates.where(F.col("baseline").isNotNull()))


def _sensitivity(
    attempt: Attempt, scored: Scored, config: Config, comparisons: Sequence[Row], gated: Sequence[Row]
) -> tuple[Row, ...]:
    """The headline comparisons by other ways to count unjudged documents, published beside the run's own."""
    if scored.scorer.conventions.unjudged != RULE or not config.compare.sensitivity:
        return ()
    ways = ways_of(headline(config, scored.scorer.specs))
    if not ways:
        return ()
    estimates = _rows(estimate_otherwise(scored.scorer, scored.labels, ways, config))
    rows = beside_the_rule(ways, estimates, comparisons, gated, config, scored.scorer.systems)
    table = scored.labels.sparkSession.createDataFrame([tuple(row.values()) for row in rows], SENSITIVITY.struct())
    return _rows(attempt.write("sensitivity", table.coalesce(1)))


def _movers(attempt: Attempt, scored: Scored, plan: Plan, config: Config) -> DataFrame | None:
    if not config.compare.movers:
        return None
    specs = headline(config, scored.scorer.specs)
    keys = [spec.key for spec in specs]
    largest = changes(scored.query_metrics, plan=plan, keys=keys, most=config.compare.movers)
    changed = attempt.hold(largest.coalesce(1))
    moved = with_moves(
        changed, scored.scorer.rankings, scored.labels, specs=specs, conventions=scored.scorer.conventions
    )
    return attempt.write("query_changes", moved.coalesce(1))


def _mean_relevant(query_metrics: DataFrame) -> float:
    """Relevant documents per query that has any."""
    found = query_metrics.where("relevant > 0").agg(F.avg("relevant")).first()
    return float(found[0]) if found is not None and found[0] is not None else 0.0


def _rows(table: DataFrame) -> tuple[dict[str, object], ...]:
    return tuple(row.asDict() for row in table.collect())
