"""One query of a published run: its lists, read again from the inputs of the run, and its labels."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.config.load import load_run_config
from pipelines.config.model import Config
from pipelines.inputs.read import read_input
from pipelines.inputs.validate import resolve_contract
from pipelines.scoring.explain import DrawnLabel
from pipelines.scoring.place import place_documents
from pipelines.warehouse.runs import Manifest, find_run
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables
from schemas.conform import conform
from schemas.errors import InputError
from udfs.conventions import Conventions


@dataclass(frozen=True)
class QueryDetails:
    """The documents of each system as they are scored, the labels, and the inputs that have changed since the run.

    With posteriors, `labels` are the means over draws, and `drawn` has the draws.
    """

    lists: dict[str, list[str]]
    labels: dict[str, float]
    changed: tuple[str, ...]
    drawn: dict[str, DrawnLabel] = field(default_factory=dict)


def read_query(
    spark: SparkSession, storage: Storage, manifest: Manifest, query: str, systems: Sequence[str]
) -> QueryDetails:
    """Read the lists and labels of one query, and which inputs have changed since the run."""
    config = load_run_config(manifest)
    if config.inputs.rankings is None:
        hint = "give inputs.rankings to keep lists that can be explained"
        raise InputError(f"run {manifest.run} evaluated the lists of its log, which are not kept", hint=hint)
    conventions = Conventions.model_validate(manifest.conventions)
    rankings, changed = _read_rows(spark, manifest, config, "rankings", query)
    placed = place_documents(rankings.where(F.col("system").isin(*systems)), conventions)
    rows = placed.orderBy("system", "rank").collect()
    lists = {system: [row["doc_id"] for row in rows if row["system"] == system] for system in systems}
    if "label_posteriors" in manifest.tables:
        drawn = _read_posteriors(storage, manifest, query)
        means = {doc: sum(label.grades) / len(label.grades) for doc, label in drawn.items()}
        return QueryDetails(lists, means, tuple(changed), drawn)
    if "labels" in manifest.tables or manifest.labels.get("from_run"):
        return QueryDetails(lists, _read_published_labels(storage, manifest, config, query), tuple(changed))
    judged, others = _read_rows(spark, manifest, config, "judgments", query)
    grades = {row["doc_id"]: float(row["grade"]) for row in judged.select("doc_id", "grade").collect()}
    return QueryDetails(lists, grades, (*changed, *others))


def _read_rows(
    spark: SparkSession, manifest: Manifest, config: Config, name: str, query: str
) -> tuple[DataFrame, list[str]]:
    """The valid rows of one query in an input, and the input's name if it has changed since the run."""
    source = config.sources()[name]
    try:
        table = read_input(spark, name, source, dt.date.fromisoformat(manifest.dt))
    except InputError as error:  # its hint is for who evaluates: keys and options that a reader of a run does not have
        raise InputError(
            f"the {name} of run {manifest.run} cannot be read again: {error.what}",
            where=error.where,
            hint="lists are explained from the inputs of the run; put them back, or evaluate the date again",
        ) from None
    rows = conform(table.raw, resolve_contract(name, config), columns=source.columns).rows
    changed = [name] if table.digest != manifest.inputs[name]["digest"] else []
    return rows.where(F.col("query_id") == query), changed


def _read_posteriors(storage: Storage, manifest: Manifest, query: str) -> dict[str, DrawnLabel]:
    """The grades of every document of the query's pool in each draw."""
    where = pc.field("query_id") == query
    rows = [
        row
        for batch in RunTables(storage, manifest).batches(
            "label_posteriors", ["doc_id", "grade_draws", "source"], where
        )
        for row in batch.to_pylist()
    ]
    return {row["doc_id"]: DrawnLabel(tuple(map(float, row["grade_draws"])), row["source"]) for row in rows}


def _read_published_labels(storage: Storage, manifest: Manifest, config: Config, query: str) -> dict[str, float]:
    """The labels as they were scored: graded pairs, with the lift as the grade if that is the scale."""
    source = manifest if "labels" in manifest.tables else find_run(storage, manifest.labels["from_run"])
    lift = f"lift_{config.labels.grade.objective}" if config.labels.grade.scale == "lift" else "grade"
    where = (pc.field("query_id") == query) & pc.field("grade").is_valid()
    labels = {}
    for batch in RunTables(storage, source).batches("labels", ["doc_id", "grade", "source", lift], where):
        for row in batch.to_pylist():
            labels[row["doc_id"]] = float(row["grade"] if row["source"] == "human" else row[lift])
    return labels
