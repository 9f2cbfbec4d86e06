"""One query of a published run: its lists, read again from the inputs of the run, and its labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.config.load import load_run_config
from pipelines.config.model import Config
from pipelines.scoring.explain import DrawnLabel
from pipelines.scoring.place import place_documents
from pipelines.scoring.read_again import name_grade_column, read_again, require_rankings
from pipelines.warehouse.runs import Manifest, find_run
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables
from udfs.conventions import Conventions

MAX_TITLES = 100  # documents of each list, and of the best labels, that titles are read of


@dataclass(frozen=True)
class QueryDetails:
    """The documents of each system as they are scored, the labels, and the inputs that have changed since the run.

    With posteriors, `labels` are the means over draws, and `drawn` has the draws.
    """

    lists: dict[str, list[str]]
    labels: dict[str, float]
    changed: tuple[str, ...]
    drawn: dict[str, DrawnLabel] = field(default_factory=dict)
    text: str | None = None  # of the query, where `queries` has it
    titles: dict[str, str] = field(default_factory=dict)  # of documents, where `documents` has them


def read_query(
    spark: SparkSession, storage: Storage, manifest: Manifest, query: str, systems: Sequence[str]
) -> QueryDetails:
    """Read the lists and labels of one query, its text and titles, and which inputs have changed since the run."""
    config = load_run_config(manifest)
    details = _read_numbers(spark, storage, manifest, config, query, systems)
    shown = [doc for docs in details.lists.values() for doc in docs[:MAX_TITLES]]
    best = sorted(details.labels, key=lambda doc: -details.labels[doc])[:MAX_TITLES]
    texts = _read_texts(spark, manifest, config, "queries", "query_id", "query", [query])
    titles = _read_texts(spark, manifest, config, "documents", "doc_id", "title", [*shown, *best])
    return replace(details, text=texts.get(query), titles=titles)


def _read_numbers(
    spark: SparkSession, storage: Storage, manifest: Manifest, config: Config, query: str, systems: Sequence[str]
) -> QueryDetails:
    require_rankings(manifest, "explained")
    conventions = Conventions.model_validate(manifest.conventions)
    rankings, moved = read_again(spark, manifest, config, "rankings")
    changed = ("rankings",) if moved else ()
    of_query = F.col("query_id") == query
    placed = place_documents(rankings.where(of_query & F.col("system").isin(*systems)), conventions)
    rows = placed.orderBy("system", "rank").collect()
    lists = {system: [row["doc_id"] for row in rows if row["system"] == system] for system in systems}
    if "label_posteriors" in manifest.tables:
        drawn = _read_posteriors(storage, manifest, query)
        means = {doc: sum(label.grades) / len(label.grades) for doc, label in drawn.items()}
        return QueryDetails(lists, means, changed, drawn)
    if "labels" in manifest.tables or manifest.labels.get("from_run"):
        return QueryDetails(lists, _read_published_labels(storage, manifest, config, query), changed)
    judged, rejudged = read_again(spark, manifest, config, "judgments")
    judged_rows = judged.where(of_query).select("doc_id", "grade").collect()
    grades = {row["doc_id"]: float(row["grade"]) for row in judged_rows}
    return QueryDetails(lists, grades, (*changed, "judgments") if rejudged else changed)


def _read_texts(
    spark: SparkSession, manifest: Manifest, config: Config, name: str, key: str, text: str, ids: Sequence[str]
) -> dict[str, str]:
    """The texts of these ids in an input; none where its data has no such column."""
    source = config.sources().get(name)
    if source is None or source.columns.get(text, text) not in manifest.inputs[name].get("columns", ()):
        return {}
    rows, _ = read_again(spark, manifest, config, name)
    rows_of_ids = rows.where(F.col(key).isin(*set(ids)) & F.col(text).isNotNull())
    return {row[key]: row[text] for row in rows_of_ids.select(key, text).collect()}


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
    lift = name_grade_column(config)
    where = (pc.field("query_id") == query) & pc.field("grade").is_valid()
    labels = {}
    for batch in RunTables(storage, source).batches("labels", ["doc_id", "grade", "source", lift], where):
        for row in batch.to_pylist():
            labels[row["doc_id"]] = float(row["grade"] if row["source"] == "human" else row[lift])
    return labels
