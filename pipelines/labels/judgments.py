"""Human judgments: they replace the behaviour grade of their pairs, and the two are compared."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.labels.grade import grade_by_cuts
from pipelines.labels.settings import HumanSettings
from schemas.outputs import LABELS

CUT = 10  # k of the NDCG of one side's order under the other's grades
_COUNTS = ("impressions", "examinations", "clicks", "carts", "purchases", "users", "positions")


def select_label_judgments(judgments: DataFrame) -> DataFrame:
    """The judgments that are labels: those without a chance."""
    return judgments.where(F.col("chance").isNull()).drop("chance")


def select_sampled_judgments(judgments: DataFrame, settings: HumanSettings) -> DataFrame:
    """The judgments of queries that were drawn with a known chance, on the scale of labels, one row per pair.

    They correct what the model says and are no labels; rows that nobody has graded are among them.
    """
    return (
        judgments.where(F.col("chance").isNotNull())
        .groupBy("query_id", "doc_id")
        .agg(
            F.max(F.when(F.col("grade").isNotNull(), grade_by_cuts(F.col("grade"), settings.cuts))).alias("grade"),
            F.max("chance").alias("chance"),
        )
    )


def merge_judgments(labels: DataFrame, judgments: DataFrame, settings: HumanSettings) -> DataFrame:
    """Replace the grade of every judged pair, and add the judged pairs that the log does not have."""
    human = judgments.select("query_id", "doc_id", grade_by_cuts(F.col("grade"), settings.cuts).alias("human"))
    judged = F.col("human").isNotNull()
    chances = {
        f"p_grade_{grade}": F.when(judged, (F.col("human") == grade).cast("double")).otherwise(
            F.col(f"p_grade_{grade}")
        )
        for grade in range(4)
    }
    return (
        labels.join(human, on=["query_id", "doc_id"], how="full")
        .withColumns(chances)
        .withColumn("grade", F.coalesce("human", "grade"))
        .withColumn("source", F.when(judged, F.lit("human")).otherwise(F.col("source")))
        .withColumn("reason", F.when(judged, F.lit("judged")).otherwise(F.col("reason")))
        .withColumns({name: F.coalesce(F.col(name), F.lit(0)).cast(LABELS[name].type) for name in _COUNTS})
        .select(*LABELS.names)
    )


def measure_agreement(labels: DataFrame, judgments: DataFrame, settings: HumanSettings) -> DataFrame:
    """One row: how far behaviour and judges agree on the pairs that both grade.

    `equal` is the share of equal grades and `weighted_kappa` the quadratic κ (Cohen 1968),
    1 − mean (h − b)² / (mean h² + mean b² − 2·mean h·mean b). `behaviour_order` is the mean NDCG@10 of the order by
    behaviour's grades under the judges' gains, `judges_order` the reverse; equal grades share their discounts
    (McSherry & Najork 2008). Queries where the other side gives all documents the same grade are left out of the mean;
    `…_by_chance` is the expectation of a random order.
    """
    human = judgments.select("query_id", "doc_id", grade_by_cuts(F.col("grade"), settings.cuts).alias("human"))
    both = (
        labels.where(F.col("grade").isNotNull())
        .join(human, on=["query_id", "doc_id"], how="inner")
        .select("query_id", "doc_id", "human", F.col("grade").alias("behaviour"))
    )
    h, b = F.col("human"), F.col("behaviour")
    sums = {"equal": (h == b).cast("double"), "off": (h - b) * (h - b), "h": h, "b": b, "hh": h * h, "bb": b * b}
    by_query = (
        _add_discounts(both)
        .groupBy("query_id")
        .agg(
            F.count(F.lit(1)).alias("pairs"),
            *[F.sum(value).alias(name) for name, value in sums.items()],
            *_compute_ndcg("behaviour_order", of="behaviour", under="human"),
            *_compute_ndcg("judges_order", of="human", under="behaviour"),
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


def _add_discounts(both: DataFrame) -> DataFrame:
    """Add the discount of each pair in either order, the mean over its ties, and the mean over the query."""
    for side in ("human", "behaviour"):
        place = F.row_number().over(Window.partitionBy("query_id").orderBy(F.desc(side), "doc_id"))
        both = both.withColumn(f"{side}_place", F.when(place <= CUT, 1 / F.log2(place + 1)).otherwise(0.0))
        shared = F.mean(f"{side}_place").over(Window.partitionBy("query_id", side))
        both = both.withColumn(f"{side}_shared", shared)
    return both.withColumn("any_place", F.mean("human_place").over(Window.partitionBy("query_id")))


def _compute_ndcg(name: str, *, of: str, under: str) -> tuple[Column, Column]:
    """Per query the NDCG of one side's order under the other's gains, and of a random order; null for equal gains."""
    gain = F.pow(F.lit(2.0), F.col(under)) - 1
    ideal = F.when(F.max(under) > F.min(under), F.sum(gain * F.col(f"{under}_place")))
    ndcg = F.sum(gain * F.col(f"{of}_shared")) / ideal
    return ndcg.alias(name), (F.sum(gain * F.col("any_place")) / ideal).alias(f"{name}_by_chance")
