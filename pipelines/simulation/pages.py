"""Who searched for what, when, and which system answered: the clean pages, then each kind of unwanted visitor."""

from datetime import UTC, datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.simulation.config import (
    PAGES_PER_CLOCKWORK_USER,
    PAGES_PER_HAMMER,
    PAGES_PER_HEAVY_USER,
    SimulationConfig,
)
from pipelines.simulation.randomness import choose, uniform, zipf

DAY = 86_400.0
CHROME = "Mozilla/5.0 (X11; Linux x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36"
BROWSERS = [CHROME.format(version) for version in range(120, 140)]
CRAWLERS = [
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
]


def draw_pages(spark: SparkSession, config: SimulationConfig) -> DataFrame:
    """One row per results page. `persona` says who asked: a person, or the kind of dirt that the page is."""
    dirt = config.dirt
    kinds = [
        _visitors(spark, config, "person", config.pages, max(1, round(config.pages / config.pages_per_user))),
        _visitors(spark, config, "crawler", round(config.pages * dirt.crawler), 40),
        _visitors(spark, config, "staff", round(config.pages * dirt.staff), 25 + round(config.pages * dirt.staff / 10)),
        _visitors(spark, config, "everything", round(config.pages * dirt.everything), config.pages),
        _fixed_day(spark, config, "clockwork", dirt.clockwork, PAGES_PER_CLOCKWORK_USER),
        _fixed_day(spark, config, "heavy", dirt.heavy, PAGES_PER_HEAVY_USER),
        _fixed_day(spark, config, "hammer", dirt.hammer, PAGES_PER_HAMMER),
    ]
    return reduce(DataFrame.unionByName, kinds)


def _visitors(spark: SparkSession, config: SimulationConfig, persona: str, pages: int, users: int) -> DataFrame:
    """Pages spread evenly over users, days and hours."""
    rows = spark.range(pages).withColumn("persona", F.lit(persona))
    user = F.floor(uniform(config.seed, "user", "persona", "id") * users)
    second = F.floor(uniform(config.seed, "second", "persona", "id") * config.days * DAY * 1000) / 1000
    return _describe(rows.withColumn("user", user).withColumn("second", second), config, asked_by="id")


def _fixed_day(spark: SparkSession, config: SimulationConfig, persona: str, share: float, each: int) -> DataFrame:
    """Users who make a set number of pages, all within one day."""
    rows = spark.range(round(config.pages * share / each) * each).withColumn("persona", F.lit(persona))
    nth = F.col("id") % each
    day = F.floor(uniform(config.seed, "day", "persona", "user") * config.days) * DAY
    if persona == "clockwork":
        jitter = uniform(config.seed, "jitter", "persona", "id") - 0.5
        within = uniform(config.seed, "begin", "persona", "user") * 0.5 * DAY + nth * 37.0 + jitter
    else:
        within = uniform(config.seed, "within", "persona", "id") * DAY
    rows = rows.withColumn("user", F.floor(F.col("id") / each))
    rows = rows.withColumn("second", F.floor((day + within) * 1000) / 1000)
    # One who hammers a product asks the same thing of the same system each time.
    return _describe(rows, config, asked_by="user" if persona == "hammer" else "id")


def _describe(rows: DataFrame, config: SimulationConfig, *, asked_by: str) -> DataFrame:
    seed = config.seed
    flat = config.zipf if asked_by == "id" else 1e-6
    start = datetime.fromisoformat(config.start).replace(tzinfo=UTC).timestamp()
    equal = dict.fromkeys(config.examination, 1.0 / len(config.examination))
    return (
        rows.withColumn("user_id", F.concat_ws("-", "persona", F.col("user").cast("string")))
        .withColumn("serp_id", F.concat_ws("-", F.lit("s"), "persona", F.col("id").cast("string")))
        .withColumn("query_no", zipf(uniform(seed, "query", "persona", asked_by), config.queries, flat))
        .withColumn("system", choose(uniform(seed, "arm", "persona", asked_by), config.traffic))
        .withColumn("device", choose(uniform(seed, "device", "user_id"), equal))
        .withColumn("user_agent", _user_agent(seed))
        .withColumn("day", F.floor(F.col("second") / DAY).cast("int"))
        .withColumn("shown_at", F.col("second") + start)
        .select("serp_id", "persona", "user_id", "user_agent", "device", "system", "query_no", "day", "shown_at")
    )


def _user_agent(seed: int) -> Column:
    draw = uniform(seed, "user agent", "user_id")
    browsers, crawlers = F.array(*map(F.lit, BROWSERS)), F.array(*map(F.lit, CRAWLERS))
    pick_browser = F.element_at(browsers, F.floor(draw * len(BROWSERS)).cast("int") + 1)
    pick_crawler = F.element_at(crawlers, F.floor(draw * len(CRAWLERS)).cast("int") + 1)
    return F.when(F.col("persona") == "crawler", pick_crawler).otherwise(pick_browser)
