"""The gate: conditions of release, judged from the estimates, each with its reason in words."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config import Config
from pipelines.config_statistics import Condition
from udfs.registry import parse
from udfs.statistics.ratio import Estimate

Row = Mapping[str, Any]

logger = logging.getLogger(__name__)


class Verdict(BaseModel):
    """What the gate says of one condition, one system and one value of its segment."""

    model_config = ConfigDict(frozen=True)

    condition: str
    candidate: str
    segment: str
    value: str
    metric: str
    verdict: Literal["pass", "fail", "undecidable"]
    reason: str
    against_baseline: bool
    warning: str = ""


def gate_rows(estimates: DataFrame, config: Config) -> list[Row]:
    """The few estimates that the gate is judged by."""
    specs = [parse(condition.metric) for condition in config.gate]
    keys = {spec.key for spec in specs} | {key for spec in specs if (key := config.judged_key(spec))}
    segments = {condition.segment for condition in config.gate}
    wanted = estimates.where(F.col("metric").isin(*keys) & F.col("segment").isin(*segments))
    return [row.asDict() for row in wanted.collect()] if config.gate else []


def judge(rows: Sequence[Row], config: Config, systems: Sequence[str], *, behaviour: bool) -> list[Verdict]:
    """The verdict on every condition; `behaviour` says that the labels were made from behaviour."""
    found = {(r["baseline"], r["candidate"], r["segment"], r["value"], r["metric"]): r for r in rows}
    verdicts = []
    for condition in config.gate:
        spec, baseline = parse(condition.metric), config.compare.baseline
        rivals = [system for system in systems if system != baseline]
        # Without a candidate nothing was shown to be good enough: that must not pass for want of a verdict.
        for candidate in [condition.candidate] if condition.candidate else rivals or [NOBODY]:
            about = None if condition.absolute else baseline
            given = {
                key[3]: row
                for key, row in found.items()
                if key[:3] == (about, candidate, condition.segment) and key[4] == spec.key
            }
            named = condition.value or ("all" if condition.segment == "all" else None)
            for value in [named] if named else sorted(given) or [NOBODY]:
                judged = found.get((None, candidate, condition.segment, value, config.judged_key(spec)))
                verdict, reason = _judged(condition, given.get(value), judged)
                logger.debug("gate: %s for %s, %s: %s, %s", condition.demand, candidate, value, verdict, reason)
                verdicts.append(
                    Verdict(
                        condition=condition.demand,
                        candidate=candidate,
                        segment=condition.segment,
                        value=value,
                        metric=spec.key,
                        verdict=verdict,
                        reason=reason,
                        against_baseline=not condition.absolute,
                        warning=ABSOLUTE if condition.absolute and behaviour else "",
                    )
                )
    return verdicts


NOBODY = "(any)"
ABSOLUTE = "an absolute target misleads on labels made from behaviour: a sparse log flatters every system"


def _judged(
    condition: Condition, row: Row | None, judged: Row | None
) -> tuple[Literal["pass", "fail", "undecidable"], str]:
    queries = 0 if row is None else row["queries"]
    if row is None or queries < condition.min_queries:
        left_out = row.get("unjudged") if row is not None else None
        rest = f"; {left_out:,} more have too little judged" if left_out else ""
        return "undecidable", f"{queries:,} queries, fewer than min_queries = {condition.min_queries:,}{rest}"
    if condition.min_judged is not None:
        share = None if judged is None else judged["macro"]
        if share is None or share < condition.min_judged:
            shown = "unknown" if share is None else f"{share:.3f}"
            return "undecidable", f"mean judged is {shown}, below min_judged = {condition.min_judged:g}"
    bound, edge, what = _bound(condition, row)
    if math.isnan(bound):
        return "undecidable", f"{what} is undefined"
    above = bound >= edge if condition.absolute else bound > edge
    relation = "reaches" if above and condition.absolute else "lies above" if above else "does not lie above"
    if condition.absolute and not above:
        relation = "does not reach"
    text = (
        f"{what}, its {condition.confidence:.3g} lower bound {bound:+.4f} {relation} {edge:+.4f}, {queries:,} queries"
    )
    return ("pass" if above else "fail"), text


def _bound(condition: Condition, row: Row) -> tuple[float, float, str]:
    """The lower bound, what it must lie above, and what it is a bound of."""
    if condition.at_least is not None:
        value, stderr, edge, what = row["macro"], row["stderr"], condition.at_least, "mean"
    elif condition.relative_drop is not None:
        value, stderr, edge, what = row["relative"], row["relative_stderr"], -condition.relative_drop, "relative change"
    else:
        value, stderr, edge, what = row["delta"], row["stderr"], 0.0 - (condition.drop or 0.0), "delta"
    if value is None or stderr is None:
        return math.nan, edge, what
    estimate = Estimate(np.array(value), np.array(stderr), np.array(row["degrees"]))
    return float(estimate.low(condition.confidence)), edge, f"{what} {value:+.4f}"


def worst_verdicts(verdicts: Sequence[Verdict]) -> dict[tuple[str, ...], str]:
    """The worst verdict on each candidate, segment, value and metric that is compared with the baseline."""
    worst: dict[tuple[str, ...], str] = {}
    order = ("pass", "undecidable", "fail")
    for v in (v for v in verdicts if v.against_baseline):
        key = (v.candidate, v.segment, v.value, v.metric)
        worst[key] = max(worst.get(key, "pass"), v.verdict, key=order.index)
    return worst


def with_verdicts(comparisons: DataFrame, verdicts: Sequence[Verdict], baseline: str | None) -> DataFrame:
    """The comparisons with the worst verdict of the gate on each row that it judged."""
    worst = worst_verdicts(verdicts)
    if not worst:
        return comparisons
    names = ["candidate", "segment", "value", "metric"]
    schema = ", ".join(f"{name} string" for name in ("baseline", *names, "_verdict"))
    said = comparisons.sparkSession.createDataFrame([(baseline, *k, v) for k, v in worst.items()], schema)
    joined = comparisons.join(F.broadcast(said), ["baseline", *names], "left")
    return joined.withColumn("gate", F.col("_verdict")).select(*comparisons.columns)
