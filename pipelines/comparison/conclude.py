"""From query metrics to conclusions: averages, comparisons, movers, verdicts and readings, published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.comparison.compare import build_p_value_rules, compare_systems
from pipelines.comparison.deciding import LogExposure
from pipelines.comparison.estimate import build_plan, estimate_metrics, select_segment_metrics
from pipelines.comparison.gate import add_verdicts, collect_gate_rows, judge_conditions
from pipelines.comparison.headline import select_headline_metrics
from pipelines.comparison.judging.apply import SheetCount, correct_estimates
from pipelines.comparison.judging.rescore import list_corrected_metrics, score_judged_queries
from pipelines.comparison.movers import add_moved_documents, find_movers
from pipelines.comparison.page_segments import SegmentedLists, estimate_page_segments
from pipelines.comparison.readings.registry import Reading, ReadingContext, collect_readings
from pipelines.comparison.segments import add_bands, limit_segment_values
from pipelines.comparison.sensitivity import (
    POSTERIOR,
    RULE,
    UnjudgedVariant,
    build_sensitivity_rows,
    estimate_variants,
    list_variants,
    set_unjudged,
)
from pipelines.comparison.settings import strip_page
from pipelines.comparison.verdicts import Verdict
from pipelines.config.model import Config, DateRange
from pipelines.scoring.score import Scorer
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.concurrent import run_concurrently
from schemas.outputs import SENSITIVITY
from udfs.draws import PosteriorDraws
from udfs.posterior.opinions import OpinionGain
from udfs.registry import MetricSpec
from udfs.spark.evidence import COUNTS_DDL, read_counts
from udfs.spark.worker import run_in_worker
from udfs.statistics.plan import EVERYTHING, Plan, Row
from udfs.tabulate import DRAWS


@dataclass(frozen=True)
class Conclusions:
    """What the manifest records in words: the gate's verdicts and the readings."""

    verdicts: tuple[Verdict, ...]
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True)
class ScoredRun:
    """The query metrics of a run, and what they were scored from; with the column `draws` where labels are drawn.

    `files` are those of the query metrics, where workers can open them. `scorer` computed the query metrics and can
    score the same lists again, on other labels or conventions; `beside` has averages that do not come from the query
    metrics; `goal` has labels by the goal alone; `days` are those of the labels, and `learned_share` of them those that
    compared systems learned from; `graded` are the published grades, for the rules other than `posterior`.
    """

    query_metrics: DataFrame
    labels: DataFrame
    scorer: Scorer
    files: Sequence[str] = ()
    beside: DataFrame | None = None
    goal: DataFrame | None = None
    days: DateRange | None = None
    learned_share: float = 0.0
    gains: tuple[OpinionGain, ...] = ()
    graded: DataFrame | None = None
    sheet: DataFrame | None = None  # judgments of queries that were drawn with a known chance


def conclude(attempt: Attempt, scored: ScoredRun, config: Config) -> Conclusions:
    """Estimate everything in one pass over the query metrics, and publish what follows from it."""
    draws = scored.scorer.draws if DRAWS in scored.query_metrics.columns else None
    plan = build_plan(config, scored.scorer.systems, scored.scorer.specs, draws)
    segmented = _add_segments(scored, plan, config)
    files = scored.files if segmented is scored.query_metrics else ()  # no segment is derived or merged
    estimates = attempt.checkpoint(
        estimate_metrics(segmented, plan=plan, cluster=config.statistics.cluster, files=files)
    )
    estimates, sheet_counts = _correct(attempt, scored, estimates, segmented, plan)
    estimates = _add_page_segments(attempt, scored, estimates, segmented, plan, config)
    _, gate_rows, exposure = run_concurrently(
        [
            lambda: _publish_averages(attempt, scored, estimates),
            lambda: collect_gate_rows(estimates, config),
            lambda: _measure_exposure(scored) if plan.not_vouched else None,  # only a hull needs it
        ]
    )
    verdicts = tuple(
        judge_conditions(gate_rows, config, scored.scorer.systems, behaviour=config.behaviour, exposure=exposure)
    )
    if not plan.pairs:
        return Conclusions(verdicts)
    shown = [EVERYTHING, *[strip_page(columns)[0] for columns in config.segments if len(columns) == 1]]
    compared, changes, relevant, goal, variants = run_concurrently(
        [
            lambda: _publish_comparisons(attempt, estimates, verdicts, config, shown),
            lambda: _publish_movers(attempt, scored, plan, config),
            lambda: _count_relevant(scored.query_metrics),
            lambda: _compare_by_goal(scored, config),
            lambda: _estimate_variants(scored, config),
        ]
    )
    context = ReadingContext(
        comparisons=compared,
        changes=changes,
        relevant=relevant,
        behaviour=config.behaviour,
        config=config,
        goal=goal,
        sensitivity=_publish_sensitivity(attempt, scored, config, compared, gate_rows, variants),
        days=scored.days,
        learned_share=scored.learned_share,
        gains=scored.gains,
        exposure=exposure,
        sheet_counts=sheet_counts,
    )
    return Conclusions(verdicts, tuple(collect_readings(context)))


def _add_segments(scored: ScoredRun, plan: Plan, config: Config) -> DataFrame:
    """The query metrics with the columns of all segments."""
    settings = config.statistics
    banded = add_bands(scored.query_metrics, bands=config.bands, columns=plan.columns)
    return limit_segment_values(
        banded,
        segments=plan.segments,
        limit=settings.max_values,
        many=settings.many_values,
        files=scored.files if banded is scored.query_metrics else (),
    )


def _correct(
    attempt: Attempt, scored: ScoredRun, estimates: DataFrame, segmented: DataFrame, plan: Plan
) -> tuple[DataFrame, tuple[SheetCount, ...]]:
    """The estimates corrected by judged queries, where there are any, and how much of their sheet is graded."""
    if scored.sheet is None or not plan.pairs:
        return estimates, ()
    judged = score_judged_queries(scored.sheet, segmented, scored.labels, scored.scorer, segments=plan.columns)
    corrected, counts = correct_estimates(estimates, judged, list_corrected_metrics(scored.scorer), plan)
    return attempt.checkpoint(corrected), counts


def _add_page_segments(
    attempt: Attempt, scored: ScoredRun, estimates: DataFrame, segmented: DataFrame, plan: Plan, config: Config
) -> DataFrame:
    """The estimates with those by columns of the log, where segments name any."""
    if scored.scorer.pages is None:
        return estimates
    lists = SegmentedLists(segmented, scored.labels, scored.scorer, scored.scorer.pages)
    by_page = estimate_page_segments(lists, plan, config, attempt.checkpoint)
    return estimates if by_page is None else attempt.checkpoint(estimates.unionByName(by_page))


def _measure_exposure(scored: ScoredRun) -> LogExposure | None:
    """What the log offers to a document; None where labels have no evidence, or its days are unknown."""
    draws = scored.scorer.draws
    if not isinstance(draws, PosteriorDraws) or scored.days is None or draws.column not in scored.labels.columns:
        return None
    counts = scored.labels.select("query_id", draws.column).mapInArrow(
        run_in_worker(read_counts(draws.layout)), COUNTS_DDL
    )
    row = counts.agg(F.sum("clicks"), F.sum("examinations"), F.approx_count_distinct("query_id")).first()
    if row is None or not row[0] or not row[1]:
        return None
    days = (scored.days.last - scored.days.first).days + 1
    return LogExposure(examinations=row[1] / row[2] / days, halving=draws.prior.strength * row[1] / row[0])


def _publish_averages(attempt: Attempt, scored: ScoredRun, estimates: DataFrame) -> None:
    averages = select_segment_metrics(estimates)
    complete = averages if scored.beside is None else averages.unionByName(scored.beside)
    attempt.write("segment_metrics", complete.coalesce(1))


def _publish_comparisons(
    attempt: Attempt, estimates: DataFrame, verdicts: Sequence[Verdict], config: Config, shown: Sequence[str]
) -> tuple[Row, ...]:
    """The comparisons, published; returns the rows of the segments that are shown."""
    compared = compare_systems(estimates, build_p_value_rules(config))
    judged = add_verdicts(compared, verdicts, config.compare.baseline)
    return _collect(attempt.write("comparisons", judged.coalesce(1)).where(F.col("segment").isin(*shown)))


def _publish_movers(attempt: Attempt, scored: ScoredRun, plan: Plan, config: Config) -> tuple[Row, ...]:
    """The largest gains and losses by the headline metrics; none where they are turned off."""
    if not config.compare.movers:
        return ()
    specs = _select_headline(scored, config)
    keys = [spec.key for spec in specs]
    movers = find_movers(scored.query_metrics, plan=plan, keys=keys, most=config.compare.movers)
    changes = add_moved_documents(
        attempt.checkpoint(movers.coalesce(1)),
        scored.scorer.rankings,
        scored.labels,
        specs=specs,
        conventions=scored.scorer.conventions,
        queries=scored.scorer.tables.queries,
        documents=scored.scorer.tables.documents,
    )
    return _collect(attempt.write("query_changes", changes.coalesce(1)))


def _list_variants(scored: ScoredRun, config: Config) -> list[UnjudgedVariant]:
    """The headline metrics by other ways to count unjudged documents; none where labels have no holes."""
    rule = scored.scorer.conventions.unjudged
    if rule not in (POSTERIOR, RULE) or not config.compare.sensitivity:
        return []
    return list_variants(_select_headline(scored, config), rule)


def _estimate_variants(scored: ScoredRun, config: Config) -> dict[str, list[Row]]:
    graded = scored.labels if scored.graded is None else scored.graded
    return estimate_variants(scored.scorer, graded, _list_variants(scored, config), config)


def _publish_sensitivity(
    attempt: Attempt,
    scored: ScoredRun,
    config: Config,
    comparisons: Sequence[Row],
    gate_rows: Sequence[Row],
    estimates: Mapping[str, Sequence[Row]],
) -> tuple[Row, ...]:
    """The headline comparisons by other ways to count unjudged documents, beside the run's own."""
    variants = _list_variants(scored, config)
    if not variants:
        return ()
    rule, systems = scored.scorer.conventions.unjudged, scored.scorer.systems
    rows = build_sensitivity_rows(variants, rule, estimates, comparisons, gate_rows, config, systems)
    attempt.write_rows(SENSITIVITY, rows)
    return tuple(rows)


def _compare_by_goal(scored: ScoredRun, config: Config) -> tuple[Row, ...]:
    """The comparisons over all queries on labels by the goal alone, where it is configured."""
    if scored.goal is None:
        return ()
    graded = set_unjudged(config, RULE) if config.posterior else config  # the goal has grades, and no posterior
    plan = build_plan(graded, scored.scorer.systems, scored.scorer.specs)
    overall = replace(plan, segments=(), bootstrap=0, percentiles=False, randomisation=0)
    estimates = estimate_metrics(scored.scorer(scored.goal), plan=overall, cluster=config.statistics.cluster)
    return _collect(estimates.where(F.col("baseline").isNotNull()))


def _select_headline(scored: ScoredRun, config: Config) -> tuple[MetricSpec, ...]:
    return select_headline_metrics(scored.scorer.specs, {condition.metric for condition in config.gate})


def _count_relevant(query_metrics: DataFrame) -> float:
    """Relevant documents per query that has any, on average."""
    row = query_metrics.where("relevant > 0").agg(F.avg("relevant")).first()
    return float(row[0]) if row is not None and row[0] is not None else 0.0


def _collect(table: DataFrame) -> tuple[Row, ...]:
    return tuple(row.asDict() for row in table.collect())
