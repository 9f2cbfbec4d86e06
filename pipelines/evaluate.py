"""The evaluation run: read, check, label, score, conclude, publish."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipelines.comparison.conclude import Conclusions, ScoredRun, conclude
from pipelines.comparison.judging.rescore import select_sheet_rows
from pipelines.config.model import Config
from pipelines.inputs.listing import FileListing
from pipelines.labels.obtain import collect_quarantine, find_label_days, grade_goal_labels, obtain_labels
from pipelines.labels.prior import LabelPosterior
from pipelines.labels.publish import PublishedLabels
from pipelines.plan import Outcome, define_evaluation
from pipelines.run import OpenRun, open_run, plan_run
from pipelines.scoring.prepare import (
    build_scorer,
    fit_posterior,
    score_whole_systems,
)
from pipelines.scoring.require import (
    require_clean_lists,
    require_common_queries,
    require_metric_columns,
    require_systems,
    resolve_conventions,
)
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.concurrent import run_concurrently
from udfs.spark.worker_table import WorkerTable
from udfs.tabulate import DRAWS


def evaluate(
    spark: SparkSession,
    config: Config,
    date: dt.date,
    *,
    force: bool = False,
    listings: Mapping[str, FileListing] | None = None,
    frames: Mapping[str, DataFrame] | None = None,
) -> Outcome:
    """Evaluate the configured systems for `date` and publish the result.

    Committed work is reused; `force` repeats it as a new run. `listings` has the files of inputs, if listed already,
    `frames` the inputs that are DataFrames of the caller.
    """
    work = define_evaluation(config)
    plan = plan_run(spark, work, date, listings, frames)
    if not force and (outcome := work.find_committed(date, plan.key)) is not None:
        return plan.publish(outcome)
    with open_run(plan, "while evaluating") as run:
        require_systems(run.inputs)
        columns = {name: table.source_columns for name, table in run.inputs.tables.items()}
        require_metric_columns(config, columns, from_behaviour=config.behaviour)
        conventions = resolve_conventions(config, run.inputs)
        sheet = select_sheet_rows(run.inputs, config)
        run.check_inputs()
        with run.stage("label"):
            published = obtain_labels(spark, run.attempt, run.inputs, config, work.labels_run)
            _, posterior = run_concurrently(
                [
                    lambda: run.attempt.write("quarantine", collect_quarantine(run.inputs, published)),
                    lambda: fit_posterior(run.attempt, run.inputs, published, config, conventions),
                ]
            )
        with run.stage("score"):
            folder = run.attempt.bundle_folder
            scorer = build_scorer(run.inputs, published, config, conventions, posterior=posterior, bundle_folder=folder)
            labels = scorer.tables.labels
            query_metrics = _publish_query_metrics(run.attempt, scorer.score(labels))
            require_clean_lists(query_metrics, conventions)
        with run.stage("conclude"):
            scored = ScoredRun(
                query_metrics=query_metrics,
                labels=labels,
                scorer=scorer,
                files=() if DRAWS in query_metrics.columns else run.attempt.list_files("query_metrics"),
                beside=score_whole_systems(scorer.rankings, run.inputs, config, conventions),
                goal=grade_goal_labels(published, config),
                days=find_label_days(config, date),
                learned_share=0.0 if published is None else published.facts.get("learned_share", 0.0),
                gains=() if posterior is None else posterior.gains,
                graded=None if published is None else published.judgments,
                sheet=sheet,
            )
            conclusions = _conclude(run, scored, config)
        return run.commit(
            conventions=conventions.model_dump(),
            gate=[verdict.model_dump() for verdict in conclusions.verdicts],
            readings=[asdict(reading) for reading in conclusions.readings],
            labels=_describe_labels(published, posterior),
        )


def _publish_query_metrics(attempt: Attempt, query_metrics: WorkerTable) -> DataFrame:
    """Write the query metrics; returned with their draws, which are not published but read by every estimate."""
    if DRAWS not in query_metrics.schema.names:
        return attempt.write("query_metrics", query_metrics)
    drawn = attempt.checkpoint(query_metrics.rows())
    attempt.write("query_metrics", drawn.drop(DRAWS))
    return drawn


def _conclude(run: OpenRun, scored: ScoredRun, config: Config) -> Conclusions:
    """Conclude, while the results so far are checked."""
    require = partial(require_common_queries, scored.query_metrics, scored.scorer)  # its error is raised first
    check = partial(run.inspection.check_outputs, run.take_unchecked())
    results = run_concurrently([require, check, partial(conclude, run.attempt, scored, config)])
    conclusions: Conclusions = results[-1]
    return conclusions


def _describe_labels(published: PublishedLabels | None, posterior: LabelPosterior | None) -> dict[str, Any]:
    """What the manifest records of the labels, with what opinions add to them."""
    facts = {} if published is None else published.facts
    gains = () if posterior is None else posterior.gains
    return facts | ({"opinions": [asdict(gain) for gain in gains]} if gains else {})
