"""Figures of the tables that a run writes: small aggregates, kept in its manifest for later runs to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

MAX_POSITIONS = 200


def collect_output_figures(outputs: Mapping[str, DataFrame]) -> dict[str, dict[str, Any]]:
    """The figures of the labels, the propensities and the scored lists that the checks need."""
    figures: dict[str, dict[str, Any]] = {}
    if "labels" in outputs:
        examined = F.max(F.when(F.col("impressions") > 0, F.col("examinations") / F.col("impressions")))
        counts = outputs["labels"].groupBy("grade").agg(F.count("*").alias("labels"), examined.alias("examined"))
        grades = counts.collect()
        figures["labels"] = {"grades": {_format_grade(row["grade"]): row["labels"] for row in grades}}
        ratios = [row["examined"] for row in grades if row["examined"] is not None]
        figures["labels"] |= {"examined": max(ratios)} if ratios else {}
    if "propensities" in outputs:
        curve = outputs["propensities"].where("context = 'all'").orderBy("position").limit(MAX_POSITIONS)
        pooled = {str(row["position"]): row["propensity"] for row in curve.select("position", "propensity").collect()}
        extremes = outputs["propensities"].agg(F.min("propensity"), F.max("propensity")).first()
        figures["propensities"] = {"curve": pooled} | ({"range": list(extremes)} if extremes and pooled else {})
    if "query_metrics" in outputs:
        sums = [F.sum(name).alias(name) for name in ("judged", "retrieved")]
        systems = outputs["query_metrics"].groupBy("system").agg(*sums).collect()
        figures["query_metrics"] = {"judged": {row["system"]: [row["judged"], row["retrieved"]] for row in systems}}
    return figures


def _format_grade(grade: int | None) -> str:
    return "unjudged" if grade is None else str(grade)
