"""Human judgments: where people have judged a pair, their word counts, and behaviour is compared with it."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.label_config import HumanSettings
from schemas.outputs import LABELS

_COUNTS = ("impressions", "examinations", "clicks", "carts", "purchases", "users", "positions")


def merge_judgments(labels: DataFrame, judgments: DataFrame, settings: HumanSettings) -> DataFrame:
    """Replace the grade of every judged pair, and add the judged pairs that behaviour never met."""
    given = judgments.select("query_id", "doc_id", _on_our_scale(settings).alias("human"))
    judged = F.col("human").isNotNull()
    return (
        labels.join(given, on=["query_id", "doc_id"], how="full")
        .withColumn("grade", F.coalesce("human", "grade"))
        .withColumn("source", F.when(judged, F.lit("human")).otherwise(F.col("source")))
        .withColumn("reason", F.when(judged, F.lit("judged")).otherwise(F.col("reason")))
        .withColumns({name: F.coalesce(F.col(name), F.lit(0)).cast(LABELS[name].type) for name in _COUNTS})
        .select(*LABELS.names)
    )


def measure_agreement(labels: DataFrame, judgments: DataFrame, settings: HumanSettings) -> DataFrame:
    """One row: pairs with both grades, share equal, quadratic weighted κ (Cohen 1968).

    κ = 1 − mean (h − b)² / (mean h² + mean b² − 2·mean h·mean b).
    """
    given = judgments.select("query_id", "doc_id", _on_our_scale(settings).alias("human"))
    h, b = F.col("human"), F.col("grade")
    apart = F.mean(h * h) + F.mean(b * b) - 2 * F.mean(h) * F.mean(b)
    return (
        labels.where(b.isNotNull())
        .join(given, on=["query_id", "doc_id"], how="inner")
        .agg(
            F.count(F.lit(1)).alias("pairs"),
            F.mean((h == b).cast("double")).alias("equal"),
            (1 - F.mean((h - b) * (h - b)) / F.when(apart > 0, apart)).alias("weighted_kappa"),
        )
        .select("pairs", "equal", "weighted_kappa")
    )


def _on_our_scale(settings: HumanSettings) -> Column:
    steps = [F.when(F.col("grade") >= cut, 1).otherwise(0) for cut in settings.cuts]
    return steps[0] + steps[1] + steps[2]
