"""Turn debiased counts into grades: what a document does beyond what its query would lead one to expect."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.label_config import GradeSettings
from schemas.outputs import LABELS
from udfs.posterior import posterior_quantile

OUTCOMES = {"click": "clicks_due", "cart": "carts", "purchase": "purchases"}
_ENOUGH = 5.0  # examinations that a pair needs to tell of the spread between pairs
_STRENGTHS = (2.0, 1000.0)


def grade(cells: DataFrame, curves: DataFrame, settings: GradeSettings) -> DataFrame:
    """One label per query and document, with every number that led to it."""
    return (
        shrink_rates(count_examinations(cells, curves), settings)
        .withColumns(_bounds())
        .withColumn("graded", _is_enough(settings))
        .withColumn("earned", _earned(settings))
        .withColumn("grade", F.when(F.col("graded"), _promoted(settings)))
        .withColumn("reason", _reason())
        .withColumn("ctr", F.col("clicks") / F.col("impressions"))
        .withColumn("source", F.lit("behaviour"))
        .select(*LABELS.names)
    )


def count_examinations(cells: DataFrame, curves: DataFrame) -> DataFrame:
    """One row per pair: E = Σ N·θ, and the clicks beyond those that trust alone would bring (Σ N·β)."""
    looked = F.col("impressions") * F.coalesce("propensity", F.lit(1.0))
    by_trust = F.col("impressions") * F.coalesce("offset", F.lit(0.0))
    uses = curves.where("record = 'use'").select("context", "position", "last_click", "propensity", "offset")
    summed = ("impressions", "clicks", "carts", "purchases", "users")
    return (
        cells.join(F.broadcast(uses), on=["context", "position", "last_click"], how="left")
        .groupBy("query_id", "doc_id")
        .agg(
            *[F.sum(name).alias(name) for name in summed],
            F.sum(looked).alias("examinations"),
            F.greatest(F.sum("clicks") - F.sum(by_trust), F.lit(0.0)).alias("clicks_due"),
            F.count_distinct("position").cast("int").alias("positions"),
        )
    )


def shrink_rates(pairs: DataFrame, settings: GradeSettings) -> DataFrame:
    """Rates per examination, shrunk to the query's, which is shrunk to the log's; lift = rate / the query's rate.

    m_q = (x_q + 200·m)/(E_q + 200), rate = (x + m_q·s)/(E + s).
    """
    query = Window.partitionBy("query_id")
    rates = pairs.crossJoin(F.broadcast(_strengths(pairs)))
    looked = F.sum("examinations").over(query)
    columns: dict[str, Column] = {}
    for outcome, count in OUTCOMES.items():
        m, prior = F.col(f"m_{outcome}"), settings.query_prior
        columns[f"base_{outcome}"] = (F.sum(count).over(query) + prior * m) / (looked + prior)
    rates = rates.withColumns(columns)
    for outcome, count in OUTCOMES.items():
        base, strength = F.col(f"base_{outcome}"), F.col(f"s_{outcome}")
        rates = rates.withColumns(
            {f"shape_{outcome}": F.col(count) + base * strength, f"rate_{outcome}": F.col("examinations") + strength}
        ).withColumn(f"lift_{outcome}", _ratio(F.col(f"shape_{outcome}") / F.col(f"rate_{outcome}"), base))
    return rates.withColumn("relevance", F.col("shape_click") / F.col("rate_click"))


def _ratio(value: Column, base: Column) -> Column:
    return F.when(base > 0, value / base)


def _strengths(pairs: DataFrame) -> DataFrame:
    """One row: for each outcome the overall rate m and the strength s of the prior, by moments.

    Over pairs with E > 5, weighted by E: v = var(x/E) − mean of m(1 − m)/E; s = m(1 − m)/v − 1 within [2, 1000].
    """
    looked = F.col("examinations")
    enough = looked > _ENOUGH
    sums = [F.sum(looked).alias("e"), F.sum(F.when(enough, looked)).alias("e5"), F.count(F.when(enough, 1)).alias("n5")]
    for outcome, count in OUTCOMES.items():
        x = F.col(count)
        sums += [
            F.sum(x).alias(f"x_{outcome}"),
            F.sum(F.when(enough, x)).alias(f"x5_{outcome}"),
            F.sum(F.when(enough, x * x / looked)).alias(f"xx5_{outcome}"),
        ]
    columns = []
    for outcome in OUTCOMES:
        m = F.when(F.col("e") > 0, F.col(f"x_{outcome}") / F.col("e")).otherwise(0.0)
        noise = m * (1 - m)
        mean = F.col(f"x5_{outcome}") / F.col("e5")
        spread = F.col(f"xx5_{outcome}") / F.col("e5") - mean * mean - noise * F.col("n5") / F.col("e5")
        strength = F.when(spread > 0, noise / spread - 1).otherwise(_STRENGTHS[1])
        clipped = F.least(F.greatest(strength, F.lit(_STRENGTHS[0])), F.lit(_STRENGTHS[1]))
        columns += [m.alias(f"m_{outcome}"), F.coalesce(clipped, F.lit(_STRENGTHS[1])).alias(f"s_{outcome}")]
    return pairs.agg(*sums).select(*columns)


def _bounds() -> dict[str, Column]:
    def quantile(outcome: str, level: float) -> Column:
        return posterior_quantile(F.col(f"shape_{outcome}"), F.col(f"rate_{outcome}"), level)

    return {
        "relevance_low": quantile("click", 0.05),
        "relevance_high": quantile("click", 0.95),
        "cart_tenth": _ratio(quantile("cart", 0.1), F.col("base_cart")),
        "purchase_tenth": _ratio(quantile("purchase", 0.1), F.col("base_purchase")),
    }


def _is_enough(settings: GradeSettings) -> Column:
    looked = F.col("examinations") >= settings.minimum_examinations
    return looked & (F.col("users") >= settings.minimum_users) & F.col(f"lift_{settings.objective}").isNotNull()


def _earned(settings: GradeSettings) -> Column:
    """The grade by lift alone. Ranks are taken among the query's judged documents only."""
    lift = F.col(f"lift_{settings.objective}")
    if settings.scale == "quantiles":
        among = Window.partitionBy("query_id", "graded").orderBy(lift)
        return by_cuts(F.percent_rank().over(among), settings.quantiles)
    return by_cuts(lift, settings.cuts)


def by_cuts(value: Column, cuts: tuple[float, float, float]) -> Column:
    """0 below the first cut, then one more from each cut on."""
    return sum((F.when(value >= cut, 1).otherwise(0) for cut in cuts[1:]), F.when(value >= cuts[0], 1).otherwise(0))


def _promoted(settings: GradeSettings) -> Column:
    """Purchases and carts promote, never demote: the rare event is strong evidence for, its absence none against."""
    by_purchase = F.when(F.col("purchase_tenth") > settings.purchase_promotes, 3).otherwise(0)
    by_cart = F.when(F.col("cart_tenth") > settings.cart_promotes, 2).otherwise(0)
    return F.greatest(F.col("earned"), by_purchase, by_cart)


def _reason() -> Column:
    promoted = F.when(F.col("grade") == 3, F.lit("promoted_by_purchase")).otherwise(F.lit("promoted_by_cart"))
    graded = F.when(F.col("grade") > F.col("earned"), promoted).otherwise(F.lit("graded"))
    return F.when(F.col("graded"), graded).otherwise(F.lit("too_little_evidence"))
