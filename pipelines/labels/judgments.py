"""Human judgments: where people have judged a pair, their word counts, and behaviour is compared with it."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.label_config import HumanSettings
from schemas.outputs import LABELS

CUT = 10  # of the NDCG of one side's order under the other's grades
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
    """One row: how far behaviour and judges agree on the pairs that both have graded.

    `equal` is the share of equal grades and `weighted_kappa` the quadratic κ (Cohen 1968),
    1 − mean (h − b)² / (mean h² + mean b² − 2·mean h·mean b). `behaviour_order` is the mean NDCG@10 of the order by
    behaviour's grades under the judges' gains, `judges_order` the reverse; equal grades share their discounts
    (McSherry & Najork 2008). Queries where the other side knows no difference say nothing and are not in the mean;
    `…_by_chance` is what a random order would have there.
    """
    given = judgments.select("query_id", "doc_id", _on_our_scale(settings).alias("human"))
    both = (
        labels.where(F.col("grade").isNotNull())
        .join(given, on=["query_id", "doc_id"], how="inner")
        .select("query_id", "doc_id", "human", F.col("grade").alias("behaviour"))
    )
    h, b = F.col("human"), F.col("behaviour")
    sums = {"equal": (h == b).cast("double"), "off": (h - b) * (h - b), "h": h, "b": b, "hh": h * h, "bb": b * b}
    by_query = (
        _discounted(both)
        .groupBy("query_id")
        .agg(
            F.count(F.lit(1)).alias("pairs"),
            *[F.sum(value).alias(name) for name, value in sums.items()],
            *_orders("behaviour_order", of="behaviour", under="human"),
            *_orders("judges_order", of="human", under="behaviour"),
        )
    )
    n = F.sum("pairs")
    apart = (F.sum("hh") + F.sum("bb")) / n - 2 * F.sum("h") * F.sum("b") / (n * n)
    return by_query.agg(
        F.coalesce(n, F.lit(0)).alias("pairs"),
        (F.sum("equal") / n).alias("equal"),
        (1 - F.sum("off") / n / F.when(apart > 0, apart)).alias("weighted_kappa"),
        *[
            column
            for name in ("behaviour_order", "judges_order")
            for column in (
                F.mean(name).alias(name),
                F.mean(f"{name}_by_chance").alias(f"{name}_by_chance"),
                F.count(name).alias(f"{name}_queries"),
            )
        ],
    )


def _discounted(both: DataFrame) -> DataFrame:
    """Beside each pair the discount of its place in either order, the one that its equals share, and the usual one."""
    found = both
    for side in ("human", "behaviour"):
        place = F.row_number().over(Window.partitionBy("query_id").orderBy(F.desc(side), "doc_id"))
        found = found.withColumn(f"{side}_place", F.when(place <= CUT, 1 / F.log2(place + 1)).otherwise(0.0))
        shared = F.mean(f"{side}_place").over(Window.partitionBy("query_id", side))
        found = found.withColumn(f"{side}_shared", shared)
    return found.withColumn("any_place", F.mean("human_place").over(Window.partitionBy("query_id")))


def _orders(name: str, *, of: str, under: str) -> tuple[Column, Column]:
    """Per query the NDCG of one side's order under the other's gains, and of no order; null where gains are equal."""
    gain = F.pow(F.lit(2.0), F.col(under)) - 1
    ideal = F.when(F.max(under) > F.min(under), F.sum(gain * F.col(f"{under}_place")))
    found = F.sum(gain * F.col(f"{of}_shared")) / ideal
    return found.alias(name), (F.sum(gain * F.col("any_place")) / ideal).alias(f"{name}_by_chance")


def _on_our_scale(settings: HumanSettings) -> Column:
    steps = [F.when(F.col("grade") >= cut, 1).otherwise(0) for cut in settings.cuts]
    return steps[0] + steps[1] + steps[2]
