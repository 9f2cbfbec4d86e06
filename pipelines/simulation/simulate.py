"""Simulate a search log with known truth, so that everything computed from it can be checked."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.simulation.behaviour import draw_clicks, draw_events
from pipelines.simulation.catalogue import draw_queries, draw_true_grades, query_name, rank_documents
from pipelines.simulation.pages import draw_pages
from pipelines.simulation.randomness import draw_uniform
from pipelines.simulation.settings import SimulationSettings
from schemas.inputs import IMPRESSIONS, INTERACTIONS

SPONSORED_POSITION = 2
RULE_OF_PERSONA = {
    "crawler": "known_bot",
    "clockwork": "clockwork",
    "heavy": "too_many_queries",
    "staff": "internal_user",
    "everything": "everything_clicked",
    "hammer": "one_user_dominates",
}


@dataclass(frozen=True)
class Simulation:
    """A log, as a shop would have it, and its truth, which only a simulation has."""

    impressions: DataFrame
    interactions: DataFrame
    rankings: DataFrame
    queries: DataFrame
    truth_grades: DataFrame  # query_id, doc_id, grade
    truth_propensities: DataFrame  # context, position, propensity
    truth_dirt: DataFrame  # table, key (serp_id or event_id), doc_id, rule that should drop it


def simulate(
    spark: SparkSession, config: SimulationSettings, *, keep: Callable[[DataFrame], DataFrame] = lambda table: table
) -> Simulation:
    """Simulate the catalogue, the pages and the events on them; only the settings are on the driver.

    `keep` computes the results of all pages once for the tables that follow from them; by default each table computes
    them again, which needs no space.
    """
    queries = draw_queries(spark, config)
    grades = draw_true_grades(queries, config)
    ranked = rank_documents(grades, config)
    shown = keep(draw_clicks(_expand_pages(draw_pages(spark, config), ranked, config), config))
    events = draw_events(shown, config)
    return Simulation(
        impressions=shown.select(*IMPRESSIONS.names, "device"),
        interactions=events.select(*INTERACTIONS.names),
        rankings=ranked.where(F.col("day") == (config.days - 1 if config.drift else 0)).select(
            "system", "query_id", "doc_id", "rank"
        ),
        queries=queries.select("query_id", "query", "weight", "intent", "category"),
        truth_grades=grades.select("query_id", "doc_id", "grade"),
        truth_propensities=_list_propensities(spark, config),
        truth_dirt=_list_dirt(shown, events),
    )


def _expand_pages(pages: DataFrame, ranked: DataFrame, config: SimulationSettings) -> DataFrame:
    """Expand each page into the results that its system ranked that day."""
    lists = (
        ranked.where((F.col("rank") <= config.shown) & F.col("system").isin(*config.traffic))
        .groupBy("system", "query_no", F.col("day").alias("list_day"))
        .agg(F.array_sort(F.collect_list(F.struct("rank", "doc_id", "grade"))).alias("results"))
    )
    paid = draw_uniform(config.seed, "sponsored", "query_id") < config.dirt.sponsored
    return (
        pages.withColumn("list_day", F.col("day") if config.drift else F.lit(0))
        .join(lists, on=["system", "query_no", "list_day"], how="inner")
        .withColumn("result", F.explode("results"))
        .withColumn("query_id", query_name("query_no"))
        .withColumn("query", F.concat(F.lit("search "), "query_no"))
        .withColumn("session_id", F.concat_ws("/", "user_id", F.col("day").cast("string")))
        .withColumn("ts", F.col("shown_at").cast("timestamp"))
        .withColumn("doc_id", F.col("result.doc_id"))
        .withColumn("grade", F.col("result.grade"))
        .withColumn("position", F.col("result.rank"))
        .withColumn("sponsored", (F.col("position") == SPONSORED_POSITION) & paid)
        .drop("result", "results")
    )


def _list_propensities(spark: SparkSession, config: SimulationSettings) -> DataFrame:
    curves = [
        spark.range(1, config.shown + 1).select(
            F.lit(f"device={device}").alias("context"),
            F.col("id").cast("int").alias("position"),
            F.pow(1.0 / F.col("id"), F.lit(eta)).alias("propensity"),
        )
        for device, eta in config.examination.items()
    ]
    return reduce(DataFrame.unionByName, curves)


def _list_dirt(shown: DataFrame, events: DataFrame) -> DataFrame:
    rule = F.create_map(*[F.lit(part) for pair in RULE_OF_PERSONA.items() for part in pair])[F.col("persona")]
    # A user who hammers a product is harmless on the other results of the page.
    harmless = (F.col("persona") == "hammer") & ~F.col("clicked")
    pages = shown.select(
        F.lit("impressions").alias("table"),
        F.col("serp_id").alias("key"),
        "doc_id",
        F.coalesce(F.when(~harmless, rule), F.when(F.col("sponsored"), F.lit("sponsored"))).alias("rule"),
    )
    done = events.select(
        F.lit("interactions").alias("table"),
        F.col("event_id").alias("key"),
        "doc_id",
        F.coalesce(rule, F.col("dirt")).alias("rule"),
    )
    return pages.unionByName(done).where(F.col("rule").isNotNull()).select("table", "key", "doc_id", "rule")
