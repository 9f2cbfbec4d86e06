"""Results pages: who searched for what, when, and which system answered, for people and for each kind of noise."""

from datetime import UTC, datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.simulation.randomness import choose_name, draw_uniform, draw_zipf
from pipelines.simulation.settings import (
    PAGES_PER_CLOCKWORK_USER,
    PAGES_PER_HAMMER,
    PAGES_PER_HEAVY_USER,
    SimulationSettings,
)

DAY = 86_400.0
CHROME = "Mozilla/5.0 (X11; Linux x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36"
BROWSERS = [CHROME.format(version) for version in range(120, 140)]
CRAWLERS = [
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
]


def draw_pages(spark: SparkSession, config: SimulationSettings) -> DataFrame:
    """One row per results page. `persona` is a person, or the kind of noise that the page is."""
    dirt = config.dirt
    staff = round(config.pages * dirt.staff)
    kinds = [
        _spread_pages(spark, config, "person", config.pages, max(1, round(config.pages / config.pages_per_user))),
        _spread_pages(spark, config, "crawler", round(config.pages * dirt.crawler), 40),
        _spread_pages(spark, config, "staff", staff, 25 + round(config.pages * dirt.staff / 10)),
        _spread_pages(spark, config, "everything", round(config.pages * dirt.everything), config.pages),
        _bundle_pages(spark, config, "clockwork", dirt.clockwork, PAGES_PER_CLOCKWORK_USER),
        _bundle_pages(spark, config, "heavy", dirt.heavy, PAGES_PER_HEAVY_USER),
        _bundle_pages(spark, config, "hammer", dirt.hammer, PAGES_PER_HAMMER),
    ]
    return reduce(DataFrame.unionByName, kinds)


def _spread_pages(spark: SparkSession, config: SimulationSettings, persona: str, pages: int, users: int) -> DataFrame:
    """Pages spread uniformly over users, days and hours."""
    rows = spark.range(pages).withColumn("persona", F.lit(persona))
    user = F.floor(draw_uniform(config.seed, "user", "persona", "id") * users)
    second = F.floor(draw_uniform(config.seed, "second", "persona", "id") * config.days * DAY * 1000) / 1000
    return _add_attributes(rows.withColumn("user", user).withColumn("second", second), config, request_key="id")


def _bundle_pages(spark: SparkSession, config: SimulationSettings, persona: str, share: float, each: int) -> DataFrame:
    """Users with a fixed number of pages, all within one day."""
    rows = spark.range(round(config.pages * share / each) * each).withColumn("persona", F.lit(persona))
    nth = F.col("id") % each
    day = F.floor(draw_uniform(config.seed, "day", "persona", "user") * config.days) * DAY
    if persona == "clockwork":
        jitter = draw_uniform(config.seed, "jitter", "persona", "id") - 0.5
        within = draw_uniform(config.seed, "begin", "persona", "user") * 0.5 * DAY + nth * 37.0 + jitter
    else:
        within = draw_uniform(config.seed, "within", "persona", "id") * DAY
    rows = rows.withColumn("user", F.floor(F.col("id") / each))
    rows = rows.withColumn("second", F.floor((day + within) * 1000) / 1000)
    # A user who hammers a product sends the same query to the same system each time.
    return _add_attributes(rows, config, request_key="user" if persona == "hammer" else "id")


def _add_attributes(rows: DataFrame, config: SimulationSettings, *, request_key: str) -> DataFrame:
    seed = config.seed
    flat = config.zipf if request_key == "id" else 1e-6
    start = datetime.fromisoformat(config.start).replace(tzinfo=UTC).timestamp()
    equal = dict.fromkeys(config.examination, 1.0 / len(config.examination))
    return (
        rows.withColumn("user_id", F.concat_ws("-", "persona", F.col("user").cast("string")))
        .withColumn("serp_id", F.concat_ws("-", F.lit("s"), "persona", F.col("id").cast("string")))
        .withColumn("query_no", draw_zipf(draw_uniform(seed, "query", "persona", request_key), config.queries, flat))
        .withColumn("system", choose_name(draw_uniform(seed, "arm", "persona", request_key), config.traffic))
        .withColumn("device", choose_name(draw_uniform(seed, "device", "user_id"), equal))
        .withColumn("user_agent", _user_agent(seed))
        .withColumn("day", F.floor(F.col("second") / DAY).cast("int"))
        .withColumn("shown_at", F.col("second") + start)
        .select("serp_id", "persona", "user_id", "user_agent", "device", "system", "query_no", "day", "shown_at")
    )


def _user_agent(seed: int) -> Column:
    draw = draw_uniform(seed, "user agent", "user_id")
    browsers, crawlers = F.array(*map(F.lit, BROWSERS)), F.array(*map(F.lit, CRAWLERS))
    pick_browser = F.element_at(browsers, F.floor(draw * len(BROWSERS)).cast("int") + 1)
    pick_crawler = F.element_at(crawlers, F.floor(draw * len(CRAWLERS)).cast("int") + 1)
    return F.when(F.col("persona") == "crawler", pick_crawler).otherwise(pick_browser)
