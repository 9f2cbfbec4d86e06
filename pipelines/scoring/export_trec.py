"""Write the lists and labels of a published run as TREC files, so that trec_eval can compute its metrics again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.config.load import load_run_config
from pipelines.config.model import Config
from pipelines.labels.judgments import select_label_judgments
from pipelines.scoring.place import place_documents
from pipelines.scoring.read_again import name_grade_column, read_again, require_rankings
from pipelines.warehouse.runs import Manifest, find_run
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import read_table
from schemas.errors import InputError
from udfs.conventions import Conventions

QRELS = "qrels.txt"
# White space separates fields, and # begins a comment; % comes first, since the others are written with it.
ENCODED = "% \t\n\v\f\r#"


@dataclass(frozen=True)
class TrecExport:
    """The files that were written, and the inputs that have changed since the run."""

    runs: dict[str, Path]  # by system
    qrels: Path
    changed: tuple[str, ...]


def export_trec(spark: SparkSession, storage: Storage, manifest: Manifest, folder: Path) -> TrecExport:
    """Write one run file per system and the qrels of a run to `folder`.

    A list is written as it was scored, ordered and without duplicates; trec_eval orders by score, so the score is the
    negative rank. White space, % and # in ids are percent-encoded.
    """
    require_rankings(manifest, "exported")
    config = load_run_config(manifest)
    conventions = Conventions.model_validate(manifest.conventions)
    labels, relabelled = _read_labels(spark, storage, manifest, config)
    _require_whole_grades(labels, manifest)
    rankings, moved = read_again(spark, manifest, config, "rankings")
    folder.mkdir(parents=True, exist_ok=True)
    qrels = folder / QRELS
    grade = F.col("grade").cast("bigint").cast("string")
    judged = F.concat_ws(" ", _encode("query_id"), F.lit("0"), _encode("doc_id"), grade)
    _write_lines({"": qrels}, labels.withColumn("system", F.lit("")), F.col("doc_id"), judged)
    rank, score = F.col("rank").cast("string"), (-F.col("rank")).cast("string")
    ranked = F.concat_ws(" ", _encode("query_id"), F.lit("Q0"), _encode("doc_id"), rank, score, _encode("system"))
    runs = {system: folder / name for system, name in name_files(manifest.systems).items()}
    _write_lines(runs, place_documents(rankings, conventions), F.col("rank"), ranked)
    changed = {"rankings": moved, "judgments": relabelled}
    return TrecExport(runs, qrels, tuple(name for name, differs in changed.items() if differs))


def name_files(systems: Sequence[str]) -> dict[str, str]:
    """A file name for each system; names of systems come from data, so only harmless characters are kept."""
    names: dict[str, str] = {}
    for system in systems:
        stem = re.sub(r"[^A-Za-z0-9_.-]", "_", system).lstrip(".")[:100] or "system"
        taken = {name.lower() for name in names.values()} | {QRELS}
        choices = (f"{stem}{suffix}.run" for suffix in ["", *(f"-{n}" for n in range(2, len(systems) + 2))])
        names[system] = next(name for name in choices if name.lower() not in taken)
    return names


def _read_labels(spark: SparkSession, storage: Storage, manifest: Manifest, config: Config) -> tuple[DataFrame, bool]:
    """The grades that the run was scored by, and whether judgments have changed since."""
    if "label_posteriors" in manifest.tables:
        raise InputError(
            f"the metrics of run {manifest.run} are means over draws of its labels, which trec_eval cannot compute",
            hint="evaluate with conventions.unjudged: cut_then_condense, zero or condense",
        )
    if "labels" in manifest.tables or manifest.labels.get("from_run"):
        source = manifest if "labels" in manifest.tables else find_run(storage, manifest.labels["from_run"])
        labels = read_table(spark, storage.uri, "labels", date=source.dt, run=source.run)
        human = F.when(F.col("source") == "human", F.col("grade"))
        grade = F.coalesce(human, F.col(name_grade_column(config))).alias("grade")
        return labels.where(F.col("grade").isNotNull()).select("query_id", "doc_id", grade), False
    judgments, changed = read_again(spark, manifest, config, "judgments")
    return select_label_judgments(judgments).select("query_id", "doc_id", "grade"), changed


def _require_whole_grades(labels: DataFrame, manifest: Manifest) -> None:
    fraction = labels.where(F.col("grade") != F.floor("grade")).first()
    if fraction is not None:
        raise InputError(
            f"the grade {fraction['grade']:g} of document {fraction['doc_id']!r} for query {fraction['query_id']!r} is "
            "not a whole number, and trec_eval reads no others",
            where=f"run {manifest.run}",
            hint="multiply the grades, and evaluate again",
        )


def _encode(name: str) -> Column:
    return reduce(
        lambda text, character: F.replace(text, F.lit(character), F.lit(f"%{ord(character):02X}")),
        ENCODED,
        F.col(name),
    )


def _write_lines(files: Mapping[str, Path], rows: DataFrame, order: Column, line: Column) -> None:
    """Write the rows of each system to its file, query by query.

    The lines of a query are joined by Spark, so that one text per list passes through the driver.
    """
    lines = F.array_sort(F.collect_list(F.struct(order.alias("at"), line.alias("line"))))
    text = F.concat_ws("\n", F.transform(lines, lambda row: row["line"]))
    texts = rows.groupBy("system", "query_id").agg(text.alias("text")).orderBy("system", "query_id")
    with ExitStack() as stack:
        opened = {
            system: stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
            for system, path in files.items()
        }
        for row in texts.select("system", "text").toLocalIterator():
            opened[row["system"]].write(row["text"] + "\n")
