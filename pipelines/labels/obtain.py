"""The labels of a run: built from its log, reused from an earlier run, or none where people judged the documents."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import DataFrame, SparkSession

from pipelines.config.model import Config, DateRange
from pipelines.inputs.listing import window_dates
from pipelines.inputs.validate import ValidatedInputs
from pipelines.labels.publish import PublishedLabels, grade_by_goal, publish_labels, reuse_labels
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.tables import read_table


def obtain_labels(
    spark: SparkSession, attempt: Attempt, inputs: ValidatedInputs, config: Config, run: str | None
) -> PublishedLabels | None:
    """Reuse the labels of `run`, or build them from the log; None where judgments are the only labels."""
    if run is not None:
        return reuse_labels(read_table(spark, config.warehouse, "labels", run=run), config.labels, run)
    if not inputs.from_behaviour:
        return None
    learned_days = config.list_learned_days(inputs.systems) if config.posterior else ()
    return publish_labels(attempt, inputs, config.labels, learned_days)


def collect_quarantine(inputs: ValidatedInputs, labels: PublishedLabels | None) -> DataFrame:
    """Collect the rows that break their contract, and the events on documents that were never shown."""
    rejected = inputs.quarantine()
    return rejected if labels is None or labels.quarantine is None else rejected.unionByName(labels.quarantine)


def grade_goal_labels(labels: PublishedLabels | None, config: Config) -> DataFrame | None:
    """Grade the labels by the goal alone; None where no comparison by it is configured."""
    goal = config.compare.goal
    return None if labels is None or goal is None else grade_by_goal(labels.labels, goal, config.labels)


def find_label_days(config: Config, date: dt.date) -> DateRange | None:
    """Return the days that the labels come from; None where they are not from a log with one path per day."""
    log = config.inputs.impressions
    if log is None or config.labels_of is not None or "{date}" not in (log.path or ""):
        return None
    return DateRange(first=window_dates(date, log.days)[0], last=date)
