"""Figures of the tables that a run has made: a few small aggregates, kept in its manifest for the runs after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

MOST_POSITIONS = 200


def outcomes(made: Mapping[str, DataFrame]) -> dict[str, dict[str, Any]]:
    """What the checks want to know of the labels, the propensities and the scored lists."""
    known: dict[str, dict[str, Any]] = {}
    if "labels" in made:
        counted = made["labels"].groupBy("grade").agg(F.count("*").alias("labels")).collect()
        known["labels"] = {"grades": {_grade(row["grade"]): row["labels"] for row in counted}}
    if "propensities" in made:
        curve = made["propensities"].where("context = 'all'").orderBy("position").limit(MOST_POSITIONS)
        pooled = {str(row["position"]): row["propensity"] for row in curve.select("position", "propensity").collect()}
        known["propensities"] = {"curve": pooled}
    if "query_metrics" in made:
        counts = [F.sum(name).alias(name) for name in ("judged", "retrieved")]
        lists = made["query_metrics"].groupBy("system").agg(*counts).collect()
        known["query_metrics"] = {"judged": {row["system"]: [row["judged"], row["retrieved"]] for row in lists}}
    return known


def _grade(grade: int | None) -> str:
    return "unjudged" if grade is None else str(grade)
