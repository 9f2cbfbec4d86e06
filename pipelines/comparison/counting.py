"""Which queries count, for a published run and as a Spark column; the rule is in `udfs.statistics.counting`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.comparison.settings import CompareSettings
from pipelines.warehouse.runs import Manifest
from udfs.statistics.counting import RETRIEVED, resolve_min_judged
from udfs.statistics.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import Column


def read_min_judged(run: Manifest) -> float | None:
    """The share of a top k that had to be judged for a query to count in this run; None where every query did."""
    inputs = run.config.get("inputs") or {}
    return resolve_min_judged(
        CompareSettings.model_validate(run.config.get("compare", {})).min_judged,
        unjudged=run.conventions.get("unjudged", "auto"),
        from_behaviour=bool(run.config.get("labels_of") or inputs.get("impressions")),
    )


def counted_value(key: str, plan: Plan) -> Column:
    """The column of a metric; null where the query does not count for it."""
    from pyspark.sql import functions as F

    judged = dict(zip(plan.metrics, plan.judged, strict=True))[key]
    if judged is None:
        return F.col(key)
    return F.when((F.col(RETRIEVED) == 0) | (F.col(judged) >= plan.min_judged), F.col(key)).alias(key)
