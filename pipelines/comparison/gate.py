"""The gate: conditions of release, judged from the estimates, each verdict with its reason."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.comparison.conditions.registry import Bound
from pipelines.comparison.deciding import LogExposure, describe_remedy, describe_undecided
from pipelines.comparison.judging.correction import use_correction
from pipelines.comparison.settings import GateCondition
from pipelines.comparison.verdicts import Outcome, Verdict, find_worst_verdicts, join_conditions
from pipelines.config.model import Config
from schemas.printable import format_count
from udfs.registry import parse_metric
from udfs.statistics.plan import EVERYTHING, Row
from udfs.statistics.ratio import Estimate

ANY = "(any)"  # stands for a candidate or a value where there is none to judge
ABSOLUTE_WARNING = "an absolute target misleads on labels made from behaviour: a sparse log flatters every system"

Estimates = Mapping[tuple[str | None, str, str, str, str], Row]  # by baseline, candidate, segment, value and metric

logger = logging.getLogger(__name__)


def collect_gate_rows(estimates: DataFrame, config: Config) -> list[Row]:
    """The few estimates that the gate is judged by."""
    if not config.gate:
        return []
    specs = [parse_metric(condition.metric) for condition in config.gate]
    keys = {spec.key for spec in specs} | {key for spec in specs if (key := config.judged_key(spec))}
    segments = {condition.segment for condition in config.gate}
    rows = estimates.where(F.col("metric").isin(*keys) & F.col("segment").isin(*segments))
    return [row.asDict() for row in rows.collect()]


def judge_conditions(
    rows: Sequence[Row], config: Config, systems: Sequence[str], *, behaviour: bool, exposure: LogExposure | None = None
) -> list[Verdict]:
    """The verdict on every condition; `behaviour` means that the labels were made from behaviour.

    `exposure` is what the log offers to a document, for what would decide an undecidable condition.
    """
    answers = map(use_correction, rows)
    estimates = {(r["baseline"], r["candidate"], r["segment"], r["value"], r["metric"]): r for r in answers}
    rivals = [system for system in systems if system != config.compare.baseline]
    return [
        verdict
        for condition in config.gate
        # Without a candidate nothing was shown to be good enough: that must not pass for lack of a verdict.
        for candidate in ([condition.candidate] if condition.candidate else rivals or [ANY])
        for verdict in _judge_values(condition, candidate, estimates, config, behaviour, exposure)
    ]


def add_verdicts(comparisons: DataFrame, verdicts: Sequence[Verdict], baseline: str | None) -> DataFrame:
    """The comparisons with the conditions of the gate on each row that it judged, and their worst verdict."""
    worst, conditions = find_worst_verdicts(verdicts), join_conditions(verdicts)
    if not worst:
        return comparisons
    names = ["baseline", "candidate", "segment", "value", "metric"]
    schema = ", ".join(f"{name} string" for name in (*names, "gate", "condition"))
    outcomes = [(baseline, *subject, verdict, conditions[subject]) for subject, verdict in worst.items()]
    judged = F.broadcast(comparisons.sparkSession.createDataFrame(outcomes, schema))
    return comparisons.drop("gate", "condition").join(judged, names, "left").select(*comparisons.columns)


def _judge_values(
    condition: GateCondition,
    candidate: str,
    estimates: Estimates,
    config: Config,
    behaviour: bool,
    exposure: LogExposure | None,
) -> Iterator[Verdict]:
    """The verdicts on one candidate: one per value of the segment, or on the value that the condition names."""
    spec, segment = parse_metric(condition.metric), condition.segment
    subject = (None if condition.absolute else config.compare.baseline, candidate, segment)
    by_value = {key[3]: row for key, row in estimates.items() if key[:3] == subject and key[4] == spec.key}
    named = condition.value or (EVERYTHING if segment == EVERYTHING else None)
    judged_key = config.judged_key(spec)
    for value in [named] if named else sorted(by_value) or [ANY]:
        judged = None if judged_key is None else estimates.get((None, candidate, segment, value, judged_key))
        row = by_value.get(value)
        refusal = _find_refusal(condition, row, judged, config.min_queries(condition))
        outcome, reason = ("undecidable", refusal) if row is None or refusal else _judge(condition, row, exposure)
        logger.debug("gate: %s for %s, %s: %s, %s", condition.demand, candidate, value, outcome, reason)
        yield Verdict(
            condition=condition.demand,
            candidate=candidate,
            segment=segment,
            value=value,
            metric=spec.key,
            verdict=outcome,
            reason=reason,
            against_baseline=not condition.absolute,
            warning=ABSOLUTE_WARNING if condition.absolute and behaviour else "",
        )


def _find_refusal(condition: GateCondition, row: Row | None, judged: Row | None, min_queries: int) -> str:
    """Why there is too little to judge a condition by; empty where there is enough."""
    queries = 0 if row is None else row["queries"]
    if row is None or queries < min_queries:
        unjudged = row.get("unjudged") if row is not None else None
        have = "has" if unjudged == 1 else "have"
        rest = f"; {unjudged:,} more {have} too little judged" if unjudged else ""
        return f"{format_count(queries, 'query')}, fewer than min_queries = {min_queries:,}{rest}"
    if condition.min_judged is not None:
        share = None if judged is None else judged["macro"]
        if share is None or share < condition.min_judged:
            shown = "unknown" if share is None else f"{share:.3f}"
            return f"mean judged is {shown}, below min_judged = {condition.min_judged:g}"
    return ""


def _judge(condition: GateCondition, row: Row, exposure: LogExposure | None) -> tuple[Outcome, str]:
    """The outcome by the lower confidence bound, and its reason; a hull that contains the limit decides nothing."""
    bound = condition.kind.bound(row, condition.limit)
    if not _is_defined(bound):
        return "undecidable", f"{bound.measure} is undefined"
    low, high = _find_bounds(bound, row["degrees"], condition.confidence)
    second = condition.kind.bound(_swap_answers(row), condition.limit) if row.get("hull") else None
    if second is not None and _is_defined(second):
        other_low, other_high = _find_bounds(second, row["other_degrees"], condition.confidence)
        low, high = min(low, other_low), max(high, other_high)
    passes = low >= bound.edge if condition.absolute else low > bound.edge
    if second is not None and not passes and high > bound.edge:
        return "undecidable", _explain_hull(condition, row, (bound, second), (low, high), exposure)
    verbs = ("reaches", "does not reach") if condition.absolute else ("is above", "is not above")
    edge = f"{bound.edge:+.4f}" if bound.edge else "0"
    reason = (
        f"{bound.measure} {bound.value:+.4f}, its {100 * condition.confidence:.3g} % lower bound {low:+.4f} "
        f"{verbs[not passes]} {edge}, {format_count(row['queries'], 'query')}"
    )
    if row.get("judged_queries"):
        reason += f", corrected by {row['judged_queries']:,} judged ones"
    return ("pass" if passes else "fail"), reason


def _explain_hull(
    condition: GateCondition,
    row: Row,
    answers: tuple[Bound, Bound],
    bounds: tuple[float, float],
    exposure: LogExposure | None,
) -> str:
    """Why two answers that the log cannot tell apart leave a condition open, and what would decide it."""
    first, second = answers
    text = (
        f"the log alone cannot decide: {first.measure} is {first.value:+.4f}, or {second.value:+.4f} if the ranks of "
        f"{row['candidate']} say nothing about documents that nobody was shown; the bounds {bounds[0]:+.4f} and "
        f"{bounds[1]:+.4f} enclose {first.edge:+.4f}, {row['queries']:,} queries"
    )
    if row.get("query_variance") is None or not first.stderr:
        return text
    undecided = describe_undecided(row, first.edge, row["stderr"] / first.stderr)
    k = parse_metric(condition.metric).k
    return f"{text}; {describe_remedy(undecided, condition.confidence, k, exposure)}"


def _swap_answers(row: Row) -> Row:
    """The row with the second answer of its hull in place of the first."""
    mean = dict.fromkeys(("delta", "macro"), row["other"])
    errors = {"stderr": row["other_stderr"], "degrees": row["other_degrees"]}
    relative = {"relative": row["other_relative"], "relative_stderr": row["other_relative_stderr"]}
    return dict(row) | mean | errors | relative


def _is_defined(bound: Bound) -> bool:
    return bound.value is not None and bound.stderr is not None and not math.isnan(bound.value + bound.stderr)


def _find_bounds(bound: Bound, degrees: float, confidence: float) -> tuple[float, float]:
    """The one-sided lower and upper confidence bounds."""
    assert bound.value is not None
    low = float(Estimate(np.array(bound.value), np.array(bound.stderr), np.array(degrees)).low(confidence))
    return low, 2 * bound.value - low
