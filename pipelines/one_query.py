"""Everything about one query of a published run: its lists, read again from where the run read them, and its labels."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.check import contract
from pipelines.config import Config
from pipelines.order import order
from pipelines.read import read
from pipelines.report.published import Published
from pipelines.runs import Manifest, find_run
from pipelines.storage import Storage
from schemas.conform import conform
from schemas.errors import InputError
from udfs.conventions import Conventions


@dataclass(frozen=True)
class OneQuery:
    """The documents of each system best first, the labels, and the inputs that have changed since the run."""

    lists: dict[str, list[str]]
    labels: dict[str, float]
    changed: tuple[str, ...]


def configuration_of(manifest: Manifest) -> Config:
    """The configuration that a run was made with; its Spark settings stay behind, some of them being hidden."""
    try:
        return Config.model_validate({key: value for key, value in manifest.config.items() if key != "spark"})
    except ValidationError as error:
        raise InputError(
            f"the configuration of run {manifest.run} cannot be read by this version: {error.errors()[0]['msg']}",
            hint="evaluate the date again",
        ) from None


def one_query(
    spark: SparkSession, storage: Storage, manifest: Manifest, query: str, systems: Sequence[str]
) -> OneQuery:
    """Read one query's rows; an input that was changed since the run is named, for its numbers may differ."""
    config = configuration_of(manifest)
    if config.inputs.rankings is None:
        hint = "give inputs.rankings to keep lists that can be explained"
        raise InputError(f"run {manifest.run} evaluated the lists of its log, which are not kept", hint=hint)
    conventions = Conventions.model_validate(manifest.conventions)
    rankings, changed = _rows(spark, manifest, config, "rankings", query)
    ranked = order(rankings.where(F.col("system").isin(*systems)), conventions).orderBy("system", "rank").collect()
    lists = {system: [row["doc_id"] for row in ranked if row["system"] == system] for system in systems}
    if "labels" in manifest.tables or manifest.labels.get("from_run"):
        return OneQuery(lists, _published_labels(storage, manifest, config, query), tuple(changed))
    judged, others = _rows(spark, manifest, config, "judgments", query)
    grades = {row["doc_id"]: float(row["grade"]) for row in judged.select("doc_id", "grade").collect()}
    return OneQuery(lists, grades, (*changed, *others))


def _rows(
    spark: SparkSession, manifest: Manifest, config: Config, name: str, query: str
) -> tuple[DataFrame, list[str]]:
    """One query's usable rows of an input, and its name where it is not what the run read."""
    source = config.sources()[name]
    given = read(spark, name, source, dt.date.fromisoformat(manifest.dt))
    rows = conform(given.raw, contract(name, config), columns=source.columns).rows
    changed = [name] if given.digest != manifest.inputs[name]["digest"] else []
    return rows.where(F.col("query_id") == query), changed


def _published_labels(storage: Storage, manifest: Manifest, config: Config, query: str) -> dict[str, float]:
    """The labels as scoring took them: graded pairs, with the lift itself where the scale is one."""
    made = manifest if "labels" in manifest.tables else find_run(storage, manifest.labels["from_run"])
    lift = f"lift_{config.labels.grade.objective}" if config.labels.grade.scale == "lift" else "grade"
    where = (pc.field("query_id") == query) & pc.field("grade").is_valid()
    found = {}
    for batch in Published(storage, made).batches("labels", ["doc_id", "grade", "source", lift], where):
        for row in batch.to_pylist():
            found[row["doc_id"]] = float(row["grade"] if row["source"] == "human" else row[lift])
    return found
