"""Queries, their documents with true grades, and the ranking of each system."""

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from pipelines.simulation.randomness import choose_name, draw_normal, draw_uniform, zipf_share
from pipelines.simulation.settings import SimulationSettings


def query_name(number: Column | str) -> Column:
    return F.concat(F.lit("q"), F.col(number) if isinstance(number, str) else number)


# The texts of queries, so that people can read a report of a simulation.
_KINDS = ("red", "waterproof", "kids", "cheap", "wool", "vintage", "large", "black", "running", "wedding")
_THINGS = (
    "shoes", "jacket", "backpack", "lamp", "desk", "headphones", "kettle", "tent", "guitar", "dress",
    "bike lock", "pillow", "mug", "raincoat", "camera bag", "gloves", "watch", "scarf", "board game", "garden chair",
)  # fmt: skip


def query_text(number: Column) -> Column:
    """Two words, and a number from the 201st query on."""
    kind = F.element_at(F.array(*map(F.lit, _KINDS)), (number % len(_KINDS) + 1).cast("int"))
    place = F.floor(number / len(_KINDS))
    thing = F.element_at(F.array(*map(F.lit, _THINGS)), (place % len(_THINGS) + 1).cast("int"))
    more = F.floor(place / len(_THINGS))
    return F.concat_ws(" ", kind, thing, F.when(more > 0, (more + 1).cast("string")))


def draw_queries(spark: SparkSession, config: SimulationSettings) -> DataFrame:
    """One row per query: its text, expected traffic, intent and category."""
    number = F.col("id").cast("int")
    return spark.range(config.queries).select(
        number.alias("query_no"),
        query_name(number).alias("query_id"),
        query_text(number).alias("query"),
        (zipf_share(number, config.queries, config.zipf) * config.pages).alias("weight"),
        choose_name(draw_uniform(config.seed, "intent", number), {"browse": 0.7, "look up": 0.3}).alias("intent"),
        F.concat(F.lit("c"), (number % 8)).alias("category"),
    )


def draw_true_grades(queries: DataFrame, config: SimulationSettings) -> DataFrame:
    """One row per query and document, with the true grade. A document matches two neighbouring queries."""
    number = F.col("query_no") * (config.documents // 2) + F.col("slot")
    shares = {str(grade): share for grade, share in enumerate(config.grade_shares)}
    return (
        queries.withColumn("slot", F.explode(F.sequence(F.lit(0), F.lit(config.documents - 1))))
        .withColumn("doc_id", F.concat(F.lit("d"), number))
        .withColumn("grade", choose_name(draw_uniform(config.seed, "grade", "query_id", "doc_id"), shares).cast("int"))
        .select("query_no", "query_id", "doc_id", "grade")
    )


def rank_documents(grades: DataFrame, config: SimulationSettings) -> DataFrame:
    """The ranking of every system, query and day: score = quality·grade + noise, with noise that drifts by day."""
    # Without drift all days are equal: one list per query is enough.
    daily = F.explode(F.sequence(F.lit(0), F.lit(config.days - 1 if config.drift else 0)))
    steady = draw_normal(config.seed, "ranker", "system", "query_id", "doc_id")
    today = draw_normal(config.seed, "ranker of the day", "system", "query_id", "doc_id", "day")
    noise = (1.0 - config.drift**2) ** 0.5 * steady + config.drift * today
    place = Window.partitionBy("system", "query_id", "day").orderBy(F.desc("score"), "doc_id")
    systems = F.explode(F.array(*map(F.lit, config.qualities)))
    quality = reduce(
        lambda rest, item: F.when(F.col("system") == item[0], F.lit(item[1])).otherwise(rest),
        config.qualities.items(),
        F.lit(0.0),
    )
    return (
        grades.withColumn("system", systems)
        .withColumn("day", daily)
        .withColumn("score", quality * F.col("grade") + noise)
        .withColumn("rank", F.row_number().over(place))
        .select("system", "query_no", "query_id", "day", "doc_id", "grade", "rank")
    )
