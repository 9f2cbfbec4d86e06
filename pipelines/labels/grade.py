"""Turn debiased counts into grades: the lift of a document over what its query leads to expect."""

from itertools import pairwise

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.labels.exact_sums import sum_exactly
from pipelines.labels.settings import GradeSettings
from schemas.outputs import GRADE_PROBABILITIES, LABELS
from udfs.spark.gamma import gamma_probability, gamma_quantile

OUTCOMES = {"click": "clicks_due", "cart": "carts", "purchase": "purchases"}
_ENOUGH = 5.0  # examinations that a pair needs to count for the variance between pairs
_WHOLE = (Window.unboundedPreceding, Window.unboundedFollowing)
_STRENGTHS = (2.0, 1000.0)  # limits of the prior strength


def grade_pairs(cells: DataFrame, curves: DataFrame, settings: GradeSettings) -> DataFrame:
    """One label per query and document, with the figures it was computed from."""
    return (
        shrink_rates(count_examinations(cells, curves), settings)
        .withColumns(_add_bounds())
        .withColumn("graded", _has_evidence(settings))
        .withColumn("value", _value_to_cut(settings))
        .withColumn("earned", grade_by_cuts(F.col("value"), _select_cuts(settings)))
        .withColumn("promoted", _promote(settings))
        .withColumn("grade", F.when(F.col("graded"), F.greatest("earned", "promoted")))
        .withColumn("reason", _reason())
        .withColumns(_below_grades(settings))
        .withColumns(_grade_probabilities())
        .withColumn("ctr", F.col("clicks") / F.col("impressions"))
        .withColumn("source", F.lit("behaviour"))
        .select(*LABELS.names)
    )


def count_examinations(cells: DataFrame, curves: DataFrame) -> DataFrame:
    """One row per pair: E = Σ N·θ, its mean log position, and the clicks beyond those of trust alone (Σ N·β)."""
    examined = F.col("impressions") * F.coalesce("propensity", F.lit(1.0))
    by_trust = F.col("impressions") * F.coalesce("offset", F.lit(0.0))
    depth = F.try_divide(sum_exactly(examined * F.log("position")), sum_exactly(examined))
    uses = curves.where("record = 'use'").select("context", "position", "history", "propensity", "offset")
    summed = ("impressions", "clicks", "carts", "purchases", "users")
    return (
        cells.join(F.broadcast(uses), on=["context", "position", "history"], how="left")
        .groupBy("query_id", "doc_id")
        .agg(
            *[F.sum(name).alias(name) for name in summed],
            sum_exactly(examined).alias("examinations"),
            F.coalesce(depth, F.lit(0.0)).alias("depth"),
            F.greatest(F.sum("clicks") - sum_exactly(by_trust), F.lit(0.0)).alias("clicks_due"),
            F.count_distinct("position").cast("int").alias("positions"),
        )
    )


def shrink_rates(pairs: DataFrame, settings: GradeSettings) -> DataFrame:
    """Rates per examination, shrunk to the query's, which is shrunk to the log's; lift = rate / base.

    m_q = (x_q + 200·m)/(E_q + 200), rate = (x + m_q·s)/(E + s). The base is the mean rate of the query's documents,
    each counted once: m_q weighs them by how much they were shown, so it is higher where the serving ranker did well.
    """
    # In order, so that sums of floats have the same bits for any partitions.
    query = Window.partitionBy("query_id").orderBy("doc_id").rowsBetween(*_WHOLE)
    rates = pairs.crossJoin(F.broadcast(_strengths(pairs)))
    examined = F.sum("examinations").over(query)
    columns: dict[str, Column] = {}
    for outcome, count in OUTCOMES.items():
        m, prior = F.col(f"m_{outcome}"), settings.query_prior
        columns[f"query_{outcome}"] = (F.sum(count).over(query) + prior * m) / (examined + prior)
    rates, columns = rates.withColumns(columns), {}
    for outcome, count in OUTCOMES.items():
        target, strength = F.col(f"query_{outcome}"), F.col(f"s_{outcome}")
        columns[f"shape_{outcome}"] = F.col(count) + target * strength
        columns[f"rate_{outcome}"] = F.col("examinations") + strength
    rates = rates.withColumns(columns)
    mean = {outcome: F.col(f"shape_{outcome}") / F.col(f"rate_{outcome}") for outcome in OUTCOMES}
    rates = rates.withColumns({f"base_{outcome}": F.avg(mean[outcome]).over(query) for outcome in OUTCOMES})
    lifts = {f"lift_{outcome}": _ratio(mean[outcome], F.col(f"base_{outcome}")) for outcome in OUTCOMES}
    return rates.withColumns({**lifts, "relevance": mean["click"]})


def _ratio(value: Column, base: Column) -> Column:
    return F.when(base > 0, value / base)


def _strengths(pairs: DataFrame) -> DataFrame:
    """One row with the overall rate m and the strength s of the prior for each outcome, by moments.

    Over pairs with E > 5, weighted by E: v = var(x/E) − mean of m(1 − m)/E; s = m(1 − m)/v − 1 within [2, 1000].
    """
    examined = F.col("examinations")
    enough = examined > _ENOUGH
    sums = [
        sum_exactly(examined).alias("e"),
        sum_exactly(F.when(enough, examined)).alias("e5"),
        F.count(F.when(enough, 1)).alias("n5"),
    ]
    for outcome, count in OUTCOMES.items():
        x = F.col(count)
        sums += [
            sum_exactly(x).alias(f"x_{outcome}"),
            sum_exactly(F.when(enough, x)).alias(f"x5_{outcome}"),
            sum_exactly(F.when(enough, x * x / examined)).alias(f"xx5_{outcome}"),
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


def _add_bounds() -> dict[str, Column]:
    def quantile(outcome: str, level: float) -> Column:
        return gamma_quantile(F.col(f"shape_{outcome}"), F.col(f"rate_{outcome}"), level)

    return {
        "relevance_low": quantile("click", 0.05),
        "relevance_high": quantile("click", 0.95),
        "cart_tenth": _ratio(quantile("cart", 0.1), F.col("base_cart")),
        "purchase_tenth": _ratio(quantile("purchase", 0.1), F.col("base_purchase")),
    }


def _has_evidence(settings: GradeSettings) -> Column:
    examined = F.col("examinations") >= settings.minimum_examinations
    return examined & (F.col("users") >= settings.minimum_users) & F.col(f"lift_{settings.objective}").isNotNull()


def _value_to_cut(settings: GradeSettings) -> Column:
    """The lift, or with `scale: quantiles` its rank among the graded documents of the query, from 0 to 1."""
    lift = F.col(f"lift_{settings.objective}")
    if settings.scale != "quantiles":
        return lift
    return F.percent_rank().over(Window.partitionBy("query_id", "graded").orderBy(lift))


def _select_cuts(settings: GradeSettings) -> tuple[float, float, float]:
    return settings.quantiles if settings.scale == "quantiles" else settings.cuts


def grade_by_cuts(value: Column, cuts: tuple[float, float, float]) -> Column:
    """The number of cuts that a value reaches."""
    return sum((F.when(value >= cut, 1).otherwise(0) for cut in cuts[1:]), F.when(value >= cuts[0], 1).otherwise(0))


def _promote(settings: GradeSettings) -> Column:
    """Purchases and carts promote and never demote: they are rare, so their absence is no evidence."""
    by_purchase = F.when(F.col("purchase_tenth") > settings.purchase_promotes, 3).otherwise(0)
    by_cart = F.when(F.col("cart_tenth") > settings.cart_promotes, 2).otherwise(0)
    return F.greatest(by_purchase, by_cart)


def _below_grades(settings: GradeSettings) -> dict[str, Column]:
    """`below_1` to `below_3`: the probability that the lift is below the cut of the grade.

    The rate is Gamma(shape, rate) and the cut is a lift, so P(rate < cut·base). The cut of a quantile is the smallest
    lift that reaches it in the query.
    """
    name = settings.objective
    lifts: list[Column] = [F.lit(cut) for cut in settings.cuts]
    if settings.scale == "quantiles":
        among = Window.partitionBy("query_id", "graded")
        reached = [F.when(F.col("value") >= cut, F.col(f"lift_{name}")) for cut in settings.quantiles]
        lifts = [F.coalesce(F.min(lift).over(among), F.lit(float("inf"))) for lift in reached]
    shape, rate, base = (F.col(f"{part}_{name}") for part in ("shape", "rate", "base"))
    return {f"below_{grade}": gamma_probability(shape, rate, lift * base) for grade, lift in enumerate(lifts, 1)}


def _grade_probabilities() -> dict[str, Column]:
    """The probability of each grade: that of its lifts; a promotion moves what is below it up."""
    below = [F.when(F.col("promoted") >= grade, 0.0).otherwise(F.col(f"below_{grade}")) for grade in (1, 2, 3)]
    ends = [F.lit(0.0), *below, F.lit(1.0)]
    # Not below 0: the probabilities of two near cuts are rounded.
    chances = [F.greatest(high - low, F.lit(0.0)) for low, high in pairwise(ends)]
    return {name: F.when(F.col("graded"), chance) for name, chance in zip(GRADE_PROBABILITIES, chances, strict=True)}


def _reason() -> Column:
    promoted = F.when(F.col("grade") == 3, F.lit("promoted_by_purchase")).otherwise(F.lit("promoted_by_cart"))
    graded = F.when(F.col("grade") > F.col("earned"), promoted).otherwise(F.lit("graded"))
    return F.when(F.col("graded"), graded).otherwise(F.lit("too_little_evidence"))
