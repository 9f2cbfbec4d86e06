"""Score the judged queries again with the judges' grades in place of the model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.comparison.judging.sheet import APOSTROPHE
from pipelines.config.model import Config
from pipelines.inputs.validate import ValidatedInputs
from pipelines.labels.judgments import select_sampled_judgments
from pipelines.scoring.score import Scorer
from schemas.errors import InputError
from udfs.draws import PosteriorDraws
from udfs.registry import MetricSpec, parse_metric
from udfs.spark.evidence import FIXED, fix_grades
from udfs.spark.worker import run_in_worker
from udfs.statistics.counting import JUDGED


@dataclass(frozen=True)
class JudgedTables:
    """What the correction is computed from; all of it is as small as what people can judge.

    `sheet` has one row per drawn query: its chance, and whether it has any grade. `by_model` and `by_judges` have one
    row per system and drawn query with the metrics, `by_model` also the columns of segments; `judged@k` in `by_judges`
    is the share of a top k that the sheet grades.
    """

    sheet: pd.DataFrame
    by_model: pd.DataFrame
    by_judges: pd.DataFrame


def select_sheet_rows(inputs: ValidatedInputs, config: Config) -> DataFrame | None:
    """The rows of a sheet among the judgments; None where there are none, an error where there is no model."""
    table = inputs.tables.get("judgments")
    if table is None or "chance" not in table.source_columns:
        return None
    rows = select_sampled_judgments(table.rows, config.labels.human)
    if not config.posterior:
        if rows.isEmpty():
            return None
        raise InputError(
            "judgments have the column chance, which says that they correct a model, but this run has none",
            where="inputs.judgments",
            hint="remove the column to use them as labels, or score labels from a log with unjudged: posterior",
        )
    source = config.inputs.judgments
    if source is None or source.format != "csv":
        return rows
    ids = {name: F.regexp_replace(name, APOSTROPHE, "$1") for name in ("query_id", "doc_id")}
    return rows.withColumns(ids)


def list_corrected_metrics(scorer: Scorer) -> list[MetricSpec]:
    """The metrics that judged queries correct: those of one list that follow from its grades."""
    return [
        spec
        for spec in scorer.specs
        if spec.metric.scope == "list" and spec.metric.condensable and not spec.metric.needs
    ]


def judged_spec(spec: MetricSpec) -> MetricSpec:
    """The metric with the judged share of this one's top k."""
    return parse_metric(JUDGED if spec.k is None else f"{JUDGED}@{spec.k}")


def score_judged_queries(
    sheet: DataFrame, segmented: DataFrame, labels: DataFrame, scorer: Scorer, *, segments: Sequence[str]
) -> JudgedTables:
    """Score the drawn queries by the judges' grades, with draws of the posterior for documents that nobody graded.

    `segmented` are the query metrics with the columns of `segments`, `labels` those of the posterior.
    """
    assert isinstance(scorer.draws, PosteriorDraws)
    drawn = sheet.groupBy("query_id").agg(
        F.max("chance").alias("chance"), F.max(F.col("grade").isNotNull()).alias("graded")
    )
    queries = F.broadcast(drawn.select("query_id"))
    specs = list_corrected_metrics(scorer)
    shares = {share.key: share for share in map(judged_spec, specs)}
    again = replace(
        scorer,
        rankings=scorer.rankings.join(queries, "query_id", "left_semi"),
        tables=replace(scorer.tables, queries=None, decisions=None),
        specs=[*specs, *shares.values()],
        segments=(),
        rows=0,
        baseline=None,
    )
    by_judges = again(_fix_grades(labels.join(queries, "query_id", "left_semi"), sheet, scorer.draws.layout))
    keys = [spec.key for spec in specs]
    by_model = segmented.join(queries, "query_id", "left_semi").select("system", "query_id", *segments, *keys)
    return JudgedTables(
        sheet=drawn.toPandas(),
        by_model=by_model.toPandas(),
        by_judges=by_judges.select("system", "query_id", "retrieved", *keys, *shares).toPandas(),
    )


def _fix_grades(labels: DataFrame, sheet: DataFrame, layout: np.dtype[np.void]) -> DataFrame:
    """The labels with the sheet's grades; only what the sheet grades counts as judged."""
    graded = sheet.where(F.col("grade").isNotNull()).select("query_id", "doc_id", F.col("grade").alias("_grade"))
    joined = labels.join(F.broadcast(graded), ["query_id", "doc_id"], "left")
    rows = joined.select(*labels.columns, F.col("_grade").cast("double").alias(FIXED))
    return rows.mapInArrow(run_in_worker(fix_grades(layout)), labels.schema)
