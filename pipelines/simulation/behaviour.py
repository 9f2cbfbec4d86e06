"""Clicks, carts and purchases on a results page, and the noise among them."""

import operator
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.simulation.randomness import draw_normal, draw_uniform, value_by_grade
from pipelines.simulation.settings import SimulationSettings

HAMMERED_POSITION = 8
CLICK_RATES = {"crawler": 0.3, "clockwork": 0.3, "heavy": 0.2, "everything": 1.0}
EVENT = "struct<event_id:string,kind:string,at:double,serp_id:string,dwell_seconds:double,value:double,dirt:string>"


def draw_clicks(impressions: DataFrame, config: SimulationSettings) -> DataFrame:
    """Mark the results that are clicked: examined with (1/k)^η, then clicked for relevance or from trust.

    P(click) = (1/k)^η·(r + (τ/k)·(1 − r)): the position-based model with trust (Agarwal et al. 2019).
    """
    eta = reduce(
        lambda rest, item: F.when(F.col("device") == item[0], F.lit(item[1])).otherwise(rest),
        config.examination.items(),
        F.lit(1.0),
    )
    relevance = value_by_grade(config.attraction)
    trusted = relevance + config.trust / F.col("position") * (1.0 - relevance)
    chance = F.pow(1.0 / F.col("position"), eta) * trusted
    for persona, rate in CLICK_RATES.items():
        chance = F.when(F.col("persona") == persona, F.lit(rate)).otherwise(chance)
    hammered = F.when(F.col("position") == min(HAMMERED_POSITION, config.shown), 1.0).otherwise(0.0)
    chance = F.when(F.col("persona") == "hammer", hammered).otherwise(chance)
    return impressions.withColumn("clicked", draw_uniform(config.seed, "click", "serp_id", "doc_id") < chance)


def draw_events(clicks: DataFrame, config: SimulationSettings) -> DataFrame:
    """One row per event: clicks, carts, purchases, and planted noise (`dirt` is the rule that should drop it)."""
    conditions, events = zip(*_build_genuine_events(config), *_build_planted_events(config), strict=True)
    return (
        # Spark compiles a condition but interprets what it explodes, and nine of ten results have no event.
        clicks.where(reduce(operator.or_, conditions))
        .withColumn("event", F.explode(F.filter(F.array(*events), lambda event: event.isNotNull())))
        .select("persona", "user_id", "doc_id", "event.*")
        .withColumn("ts", F.col("at").cast("timestamp"))
        .drop("at")
    )


def _draw(config: SimulationSettings, purpose: str) -> Column:
    return draw_uniform(config.seed, purpose, "serp_id", "doc_id")


def _event(
    when: Column, name: str, kind: str, at: Column, *, serp: Column, dwell: Column, dirt: str | None
) -> tuple[Column, Column]:
    """The condition under which a result has this event, and the event, which is null elsewhere."""
    event = F.struct(
        F.concat_ws("-", F.lit(name), "serp_id", "doc_id").alias("event_id"),
        F.lit(kind).alias("kind"),
        (F.floor(at * 1000) / 1000).alias("at"),
        serp.alias("serp_id"),
        dwell.alias("dwell_seconds"),
        F.lit(None).cast("double").alias("value") if kind != "purchase" else F.lit(20.0).alias("value"),
        F.lit(dirt).cast("string").alias("dirt"),
    )
    return when, F.when(when, event).cast(EVENT)


def _times(config: SimulationSettings) -> tuple[Column, Column, Column, Column]:
    """Time of the click, dwell time, time of the cart, time of the purchase."""
    clicked_at = F.col("shown_at") + 3.0 * F.col("position") + 30.0 * _draw(config, "wait")
    dwell = 60.0 * (1.0 + F.col("grade")) * F.exp(0.7 * draw_normal(config.seed, "dwell", "serp_id", "doc_id"))
    carted_at = clicked_at + 10.0 + 300.0 * _draw(config, "cart after")
    days_later = F.least(-F.log(1.0 - _draw(config, "purchase after")), F.lit(6.5))
    return clicked_at, dwell, carted_at, carted_at + 86_400.0 * days_later


def _build_genuine_events(config: SimulationSettings) -> list[tuple[Column, Column]]:
    clicked_at, dwell, carted_at, bought_at = _times(config)
    carted = (
        F.col("clicked") & (F.col("persona") == "person") & (_draw(config, "cart") < value_by_grade(config.cart_rates))
    )
    bought = carted & (_draw(config, "purchase") < config.purchase_rate)
    here, nowhere = F.col("serp_id"), F.lit(None).cast("string")
    page = F.when(_draw(config, "page known") < config.page_known, here).otherwise(nowhere)
    none = F.lit(None).cast("double")
    late = bought & (_draw(config, "late purchase") < config.dirt.late_purchase)
    return [
        _event(F.col("clicked"), "click", "click", clicked_at, serp=here, dwell=dwell, dirt=None),
        _event(carted, "cart", "cart", carted_at, serp=page, dwell=none, dirt=None),
        _event(bought & ~late, "purchase", "purchase", bought_at, serp=page, dwell=none, dirt=None),
        _event(late, "purchase", "purchase", clicked_at + 86_400.0 * 9, serp=here, dwell=none, dirt="late_event"),
    ]


def _build_planted_events(config: SimulationSettings) -> list[tuple[Column, Column]]:
    """Events that should be dropped, planted on people's pages so that only their own rule can drop them."""
    dirt = config.dirt
    clicked_at, dwell, _, _ = _times(config)
    person = F.col("persona") == "person"
    organic = person & ~F.col("sponsored")
    click, other = organic & F.col("clicked"), organic & ~F.col("clicked")
    here = F.col("serp_id")
    # Late and ghost clicks are planted on results without a click: rates per click × 0.07 clicks per result.
    late = other & (_draw(config, "late click") < dirt.late_click * 0.07)
    repeat_at = clicked_at + dwell + 60.0 + 200.0 * _draw(config, "again after")
    double_at = clicked_at + 0.2 + 1.6 * _draw(config, "double after")
    short = 0.2 + 3.0 * _draw(config, "short")
    doubled, repeated, redelivered = (
        click & (_draw(config, purpose) < share)
        for purpose, share in (
            ("double", dirt.double_click),
            ("repeat", dirt.repeat_click),
            ("redelivered", dirt.redelivered),
        )
    )
    ghost = other & ~late & (_draw(config, "ghost") < dirt.ghost * 0.07)
    accidental = other & ~late & ~ghost & (_draw(config, "accident") < dirt.accidental)
    nowhere = F.concat(F.lit("ghost-"), here)
    late_at = F.col("shown_at") + 1_860.0 + 7_200.0 * _draw(config, "late after")
    return [
        _event(redelivered, "click", "click", clicked_at, serp=here, dwell=dwell, dirt="duplicate_event"),
        _event(doubled, "double", "click", double_at, serp=here, dwell=dwell, dirt="duplicate_event"),
        _event(repeated, "repeat", "click", repeat_at, serp=here, dwell=dwell, dirt="repeat_click"),
        _event(late, "late", "click", late_at, serp=here, dwell=dwell, dirt="late_event"),
        _event(ghost, "ghost", "click", clicked_at, serp=nowhere, dwell=dwell, dirt="no_impression"),
        _event(accidental, "accident", "click", clicked_at, serp=here, dwell=short, dirt="short_dwell"),
    ]
