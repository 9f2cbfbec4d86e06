"""The skeleton of a run, shared by `evaluate` and `label`.

Read the inputs, derive the key, open an attempt, validate and check the inputs; then, after the steps of the run
itself, check the results and commit.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipelines.config.model import Config
from pipelines.inputs.count import CountRequest, CountResult, count_rows
from pipelines.inputs.day_files import LOG
from pipelines.inputs.days import LogDay, list_log_days
from pipelines.inputs.listing import FileListing
from pipelines.inputs.read import InputTable, read_frame, read_input
from pipelines.inputs.validate import ValidatedInputs, describe_input, validate_inputs
from pipelines.plan import SMALL_BYTES, Outcome, Work
from pipelines.quality.day_figures import count_log
from pipelines.quality.inspect import Inspection
from pipelines.stages import Stages
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.catalog.publish import publish_to_catalog
from pipelines.warehouse.code_version import hash_code
from pipelines.warehouse.run_key import hash_json
from pipelines.warehouse.storage import Storage
from schemas.conform import ConformedTable
from schemas.spark_errors import raise_input_errors


@dataclass(frozen=True)
class RunPlan:
    """The inputs of a run and the key that identifies its work; nothing is written yet."""

    spark: SparkSession
    config: Config
    date: dt.date
    inputs: Mapping[str, InputTable]
    key: str
    small: bool = False  # whether it is known to read little data, on this machine
    stages: Stages = field(default_factory=Stages)

    @property
    def storage(self) -> Storage:
        return Storage(self.config.warehouse)

    def publish(self, outcome: Outcome) -> Outcome:
        """Copy a committed run to the tables of the catalog, where one is configured; also what a former call left."""
        if self.config.output.namespace is not None:
            with self.stages.stage("publish"):
                publish_to_catalog(self.spark, self.storage, outcome.manifest, self.config.output)
        return outcome


@dataclass(frozen=True)
class OpenRun:
    """A run that is being computed: its attempt, its validated inputs, and the quality checks so far."""

    plan: RunPlan
    attempt: Attempt
    inspection: Inspection
    inputs: ValidatedInputs
    facts: Mapping[str, Any]  # of the manifest; the seconds of the stages are added as they end
    checked: set[str] = field(default_factory=set)  # the results that have been taken to be checked

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Time and log one stage."""
        return self.plan.stages.stage(name)

    def check_inputs(self) -> None:
        """Run the quality checks of the inputs; a failed one refuses the run."""
        with self.stage("inspect"):
            self.inspection.check_inputs(self.plan.inputs, self.inputs)
            self.inspection.refuse_if_failed(self.attempt, self.facts)

    def take_unchecked(self) -> dict[str, DataFrame]:
        """The results written so far that have not been taken yet, for `inspection.check_outputs`."""
        written = self.attempt.read_tables(self.plan.spark)
        tables = {name: table for name, table in written.items() if name not in self.checked}
        self.checked.update(tables)
        return tables

    def commit(self, **facts: Any) -> Outcome:
        """Run the quality checks of the other results, then commit; a failed check refuses the run."""
        with self.stage("inspect results"):
            self.inspection.check_outputs(self.take_unchecked())
            self.inspection.refuse_if_failed(self.attempt, self.facts)
            checks = self.inspection.publish_results(self.attempt)
        return self.plan.publish(Outcome(self.attempt.commit(**self.facts, **facts, checks=checks), reused=False))


def plan_run(
    spark: SparkSession,
    work: Work,
    date: dt.date,
    listings: Mapping[str, FileListing] | None = None,
    frames: Mapping[str, DataFrame] | None = None,
) -> RunPlan:
    """Read the inputs and derive the key of the run.

    `listings` has the files that have been listed already, `frames` the inputs that are DataFrames of the caller.
    """
    stages = Stages()
    with stages.stage("read"):
        inputs = _read_inputs(spark, work.config, date, listings or {}, frames or {})
        key = work.build_key(date, {name: table.digest for name, table in inputs.items()})
    small = _reads_little(spark, inputs, listings or {})
    return RunPlan(spark, work.config, date, inputs, key, small=small, stages=stages)


def _reads_little(spark: SparkSession, inputs: Mapping[str, InputTable], listings: Mapping[str, FileListing]) -> bool:
    """Whether all inputs are files of a known, small size and Spark is this process: it loses no executor."""
    size = sum(listing.bytes for listing in listings.values())
    return (
        set(inputs) == set(listings)
        and size < SMALL_BYTES
        and str(spark.conf.get("spark.master", "")).startswith("local")
    )


@contextmanager
def open_run(plan: RunPlan, doing: str) -> Iterator[OpenRun]:
    """Open an attempt and validate the inputs; leaving without a commit removes what was written."""
    places = [plan.storage.uri, *(place for table in plan.inputs.values() for place in table.places)]
    attempt = Attempt(plan.storage, plan.date, plan.key, small=plan.small)
    with attempt, raise_input_errors(doing, places):
        plan.stages.tables = attempt.tables
        with plan.stages.stage("check"):
            plan = _store_costly(plan, attempt)
            days = list_log_days(plan.spark, plan.config, plan.date, plan.inputs)
            inspection, inputs = _validate(plan.config, plan.date, plan.inputs, days)
        facts = _describe_run(plan, inputs)
        yield OpenRun(plan=plan, attempt=attempt, inspection=inspection, inputs=inputs, facts=facts)


def inspect_inputs(
    spark: SparkSession, config: Config, date: dt.date, listings: Mapping[str, FileListing] | None = None
) -> Inspection:
    """Validate and check the inputs of `date` only; nothing is written.

    `listings` has the files that have been listed already: only a list made without Spark knows what Spark skips.
    """
    with raise_input_errors("while checking"):
        tables = _read_inputs(spark, config, date, listings or {}, {})
        inspection, inputs = _validate(config, date, tables)
        inspection.check_inputs(tables, inputs)
    return inspection


def _store_costly(plan: RunPlan, attempt: Attempt) -> RunPlan:
    """The plan with the inputs that are costly to read as checkpoints: several passes follow."""
    stored = {
        name: replace(table, raw=attempt.checkpoint(table.raw))
        for name, table in plan.inputs.items()
        if table.is_costly
    }
    return replace(plan, inputs={**plan.inputs, **stored})


def _read_inputs(
    spark: SparkSession,
    config: Config,
    date: dt.date,
    listings: Mapping[str, FileListing],
    frames: Mapping[str, DataFrame],
) -> dict[str, InputTable]:
    return {
        name: read_frame(frames[name], name, source, date)
        if name in frames
        else read_input(spark, name, source, date, listings.get(name))
        for name, source in config.sources().items()
    }


def _validate(
    config: Config, date: dt.date, tables: Mapping[str, InputTable], days: tuple[LogDay, ...] = ()
) -> tuple[Inspection, ValidatedInputs]:
    """Validate the inputs; the figures for the quality checks are collected in the same pass."""
    inspection = Inspection.start(config, Storage(config.warehouse), date)

    def count(table: ConformedTable, request: CountRequest) -> CountResult:
        if not days or table.table.name not in LOG:
            return count_rows(table, request)
        return count_log(days, table, request, config.sources()[table.table.name])

    return inspection, validate_inputs(tables, config, inspection.request_counts, count=count, days=days)


def _describe_run(plan: RunPlan, inputs: ValidatedInputs) -> dict[str, Any]:
    """Return what the manifest of a committed or refused run records about its origin."""
    return {
        "seconds": plan.stages.seconds,
        "config": plan.config.dump_redacted(),
        "config_hash": hash_json(plan.config.dump_settings())[:12],
        "code": hash_code(),
        "spark": plan.spark.version,
        "inputs": {name: describe_input(table, inputs.counts[name]) for name, table in plan.inputs.items()},
        "systems": inputs.systems,
    }
