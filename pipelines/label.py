"""The label run: read, check, label, publish. Nothing is scored."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from pipelines.config.model import Config
from pipelines.inputs.listing import FileListing
from pipelines.labels.obtain import collect_quarantine
from pipelines.labels.publish import publish_labels
from pipelines.plan import Outcome, define_labelling
from pipelines.run import open_run, plan_run
from pipelines.warehouse.concurrent import run_concurrently


def label(
    spark: SparkSession,
    config: Config,
    date: dt.date,
    *,
    force: bool = False,
    listings: Mapping[str, FileListing] | None = None,
    frames: Mapping[str, DataFrame] | None = None,
) -> Outcome:
    """Build the labels of the configured log for `date` and publish them.

    Committed work is reused; `force` repeats it as a new run. `listings` has the files of inputs, if listed already,
    `frames` the inputs that are DataFrames of the caller.
    """
    work = define_labelling(config)
    plan = plan_run(spark, work, date, listings, frames)
    if not force and (outcome := work.find_committed(date, plan.key)) is not None:
        return plan.publish(outcome)
    with open_run(plan, "while labelling") as run:
        run.check_inputs()
        with run.stage("label"):
            labels = publish_labels(run.attempt, run.inputs, work.config.labels)
            quarantine = collect_quarantine(run.inputs, labels)
            check = partial(run.inspection.check_outputs, run.take_unchecked())
            run_concurrently([check, partial(run.attempt.write, "quarantine", quarantine)])
        return run.commit(conventions={}, labels=labels.facts)
