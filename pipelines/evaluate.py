"""The evaluation: one way through, from inputs to a committed run."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.check import Checked, check
from pipelines.complaints import input_errors
from pipelines.conclude import Scored, conclude
from pipelines.config import Config, Span
from pipelines.coverage import coverage
from pipelines.impute import redrawer
from pipelines.labelling import Labelled, by_goal, earlier_labels, labelled
from pipelines.publish import Attempt
from pipelines.quality.inspect import Inspection, record
from pipelines.read import Input, read, window
from pipelines.rescore import Scorer
from pipelines.runs import Manifest, code_version, committed, digest, labels_run, read_table, run_key
from pipelines.score import Evidence
from pipelines.stages import Stages
from pipelines.storage import Storage
from schemas.errors import ConfigurationError, DataQualityError, InputError
from udfs.conventions import Conventions
from udfs.registry import Spec

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """A committed run, and whether this call did the work or found it done."""

    manifest: Manifest
    found_done: bool


def evaluate(spark: SparkSession, config: Config, date: dt.date, *, force: bool = False) -> Outcome:
    """Evaluate the configured systems for `date` and publish the result.

    Work that is already committed is found and returned; `force` does it again as a new run.
    """
    stages = Stages()
    storage = Storage(config.warehouse)
    with stages.stage("read"):
        inputs = {name: read(spark, name, source, date) for name, source in config.sources().items()}
        digests = {name: source.digest for name, source in inputs.items()}
        found = None if config.labels_of is None else labels_run(storage, config.labels_of)
        key = run_key(date, config.settings(), digests if found is None else digests | {"labels": found})
    done = [manifest for manifest in committed(storage, date=date.isoformat()) if manifest.key == key]
    if done and not force:
        logger.debug("run %s has the key %s of this work: date, configuration, inputs and code", done[0].run, key)
        return Outcome(done[0], found_done=True)
    with Attempt(storage, date, key) as attempt, input_errors("while evaluating"):
        stages.tables = attempt.tables
        with stages.stage("check"):
            inspection = Inspection.begin(config, storage, date)
            checked = check(inputs, config, inspection.ask)
            require_systems(checked)
            conventions = resolved(config.conventions, checked)
        facts = account(spark, inputs, checked, config, stages)
        with stages.stage("inspect"):
            inspection.inputs(inputs, checked)
            inspection.settle(attempt, spark, facts)
        with stages.stage("label"):
            made = _labels(spark, attempt, checked, config, found)
            attempt.write("quarantine", quarantined(checked, made))
            rankings = lists(checked, made)
        with stages.stage("score"):
            proof = evidence(checked, config, made)
            rescore = scorer(rankings, proof, checked, config, conventions)
            query_metrics = attempt.write("query_metrics", rescore(proof.labels))
            refuse(query_metrics, conventions)
        with stages.stage("conclude"):
            scored = Scored(
                query_metrics,
                proof.labels,
                rescore,
                redraw=redrawer(proof.labels, None if made is None else made.labels, config, conventions.max_grade),
                beside=of_systems(rankings, checked, config, conventions),
                goal=goal_labels(made, config),
                days=labelled_days(config, date),
            )
            conclusions = conclude(attempt, scored, config)
        with stages.stage("inspect results"):
            checks = believed(spark, attempt, inspection, facts)
        manifest = attempt.commit(
            **facts,
            conventions=conventions.model_dump(),
            checks=checks,
            gate=[verdict.model_dump() for verdict in conclusions.verdicts],
            readings=[asdict(reading) for reading in conclusions.readings],
            labels={} if made is None else made.facts,
        )
    return Outcome(manifest, found_done=False)


def require_systems(checked: Checked) -> None:
    """Stop where nothing says whose lists they are."""
    if not checked.systems:
        hint = "give rankings, or the column system of impressions"
        raise InputError("there are no systems to evaluate: the log does not name them", hint=hint)


def lists(checked: Checked, made: Labelled | None) -> DataFrame:
    """The ranked lists to evaluate: those that are given, or the pages of the log."""
    logged = None if made is None else made.rankings
    return checked.rows("rankings") if "rankings" in checked.tables or logged is None else logged


def of_lists(config: Config) -> list[Spec]:
    """The metrics that have a value for every list."""
    return [spec for spec in config.specs if spec.metric.scope != "system"]


def of_systems(rankings: DataFrame, checked: Checked, config: Config, conventions: Conventions) -> DataFrame | None:
    """The averages of metrics that have one value for a whole system; None where there are none."""
    whole = [spec for spec in config.specs if spec.metric.scope == "system"]
    if not whole:
        return None
    return coverage(rankings, checked.rows("documents"), specs=whole, conventions=conventions)


def scorer(rankings: DataFrame, facts: Evidence, checked: Checked, config: Config, conventions: Conventions) -> Scorer:
    """The function from labels to query metrics."""
    rows = sum(count.kept for count in checked.counts.values())
    return Scorer(rankings, facts, checked.systems, config.query_columns, of_lists(config), conventions, rows)


def label(spark: SparkSession, config: Config, date: dt.date, *, force: bool = False) -> Outcome:
    """Make the labels of the configured log for `date` and publish them, without evaluating anything."""
    if config.inputs.impressions is None:
        hint = "give inputs.impressions and inputs.interactions"
        raise ConfigurationError("there is no log to make labels from", where="inputs", hint=hint)
    log = config.only_log()
    stages = Stages()
    storage = Storage(log.warehouse)
    with stages.stage("read"):
        inputs = {name: read(spark, name, source, date) for name, source in log.sources().items()}
        key = run_key(date, {"labels alone": log.settings()}, {name: i.digest for name, i in inputs.items()})
    done = [manifest for manifest in committed(storage, date=date.isoformat()) if manifest.key == key]
    if done and not force:
        return Outcome(done[0], found_done=True)
    with Attempt(storage, date, key) as attempt, input_errors("while labelling"):
        stages.tables = attempt.tables
        with stages.stage("check"):
            inspection = Inspection.begin(log, storage, date)
            checked = check(inputs, log, inspection.ask)
        facts = account(spark, inputs, checked, log, stages)
        with stages.stage("inspect"):
            inspection.inputs(inputs, checked)
            inspection.settle(attempt, spark, facts)
        with stages.stage("label"):
            made = labelled(attempt, checked, log.labels)
            attempt.write("quarantine", quarantined(checked, made))
        with stages.stage("inspect results"):
            checks = believed(spark, attempt, inspection, facts)
        manifest = attempt.commit(**facts, conventions={}, labels=made.facts, checks=checks)
    return Outcome(manifest, found_done=False)


def _labels(
    spark: SparkSession, attempt: Attempt, checked: Checked, config: Config, run: str | None
) -> Labelled | None:
    """Labels of an earlier run, or made from the log, or none where people's judgments are all there is."""
    if run is not None:
        return earlier_labels(read_table(spark, config.warehouse, "labels", run=run), config.labels, run)
    return labelled(attempt, checked, config.labels) if checked.from_behaviour else None


def quarantined(checked: Checked, made: Labelled | None) -> DataFrame:
    """What could not be used: rows that break their contract, and events on what was never shown."""
    lost = None if made is None else made.quarantine
    return checked.quarantine() if lost is None else checked.quarantine().unionByName(lost)


def evidence(checked: Checked, config: Config, made: Labelled | None) -> Evidence:
    """The tables that lists are scored by, as far as they are configured."""
    given = {name: checked.rows(name) for name in ("queries", "documents", "decisions") if name in checked.tables}
    labels = checked.rows("judgments") if made is None else made.judgments
    return Evidence(labels, **given, earlier=config.other)


def goal_labels(made: Labelled | None, config: Config) -> DataFrame | None:
    """Labels by the goal alone, where a comparison by them is asked for."""
    goal = config.compare.goal
    return None if made is None or goal is None else by_goal(made.labels, goal, config.labels)


def labelled_days(config: Config, date: dt.date) -> Span | None:
    """The days that the labels come from, where they come from a log of this run that is kept by day."""
    log = config.inputs.impressions
    if log is None or config.labels_of is not None or "{date}" not in (log.path or ""):
        return None
    return Span(first=window(date, log.days)[0], last=date)


def resolved(conventions: Conventions, checked: Checked) -> Conventions:
    """The conventions with what depends on the data filled in, as they are stored with the numbers."""
    # Labels from behaviour have holes where the serving ranker buried documents: those are left out, not counted as 0.
    usual = "cut_then_condense" if checked.from_behaviour else "zero"
    unjudged = usual if conventions.unjudged == "auto" else conventions.unjudged
    top = conventions.max_grade or (checked.max_grade if checked.max_grade > 0 else None)
    labels_from = "behaviour" if checked.from_behaviour else "judgments"
    logger.debug("labels from %s; unjudged documents: %s; top of the scale: %s", labels_from, unjudged, top)
    return conventions.model_copy(update={"unjudged": unjudged, "max_grade": top})


def refuse(query_metrics: DataFrame, conventions: Conventions) -> None:
    """Stop where the conventions allow neither ties nor duplicates and the lists have some."""
    for column, forbidden in {"tied": conventions.ties, "duplicates": conventions.duplicates}.items():
        if forbidden != "error":
            continue
        found = query_metrics.where(F.col(column) > 0).select("system", "query_id", column)
        first = found.orderBy("system", "query_id").first()
        if first is not None:
            raise DataQualityError(
                f"{found.count():,} lists have {column} documents, first system {first['system']!r}, "
                f"query {first['query_id']!r}",
                hint=f"mend the rankings, or choose another conventions.{'ties' if column == 'tied' else column}",
            )


def look(spark: SparkSession, config: Config, date: dt.date) -> Inspection:
    """Look at the inputs of `date` alone; nothing is written."""
    with input_errors("while checking"):
        inputs = {name: read(spark, name, source, date) for name, source in config.sources().items()}
        inspection = Inspection.begin(config, Storage(config.warehouse), date)
        checked = check(inputs, config, inspection.ask)
        inspection.inputs(inputs, checked)
    return inspection


def believed(spark: SparkSession, attempt: Attempt, inspection: Inspection, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Look at the results too, stop where they cannot be right, and publish what was found."""
    inspection.outputs(attempt.written(spark))
    inspection.settle(attempt, spark, facts)
    return inspection.publish(attempt, spark)


def account(
    spark: SparkSession, inputs: Mapping[str, Input], checked: Checked, config: Config, stages: Stages
) -> dict[str, Any]:
    """What a manifest says of a run whatever comes of it; the seconds of its stages are added as they go by."""
    return {
        "seconds": stages.seconds,
        "config": config.published(),
        "config_hash": digest(config.settings())[:12],
        "code": code_version(),
        "spark": spark.version,
        "inputs": {name: record(source, checked, name) for name, source in inputs.items()},
        "systems": checked.systems,
    }
