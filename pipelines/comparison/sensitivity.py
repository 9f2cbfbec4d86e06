"""Sensitivity to the rule for unjudged documents: the same comparisons with the other rules.

The run's rule gives every document a posterior, or cuts a list at k and removes unjudged documents from the rest, which
flatters whoever ranks junk. Counting them as 0 favours the system whose results were shown and so could be judged;
removing them before the cut favours a newcomer, whose judged documents move up. A result that holds with all rules does
not depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.comparison.estimate import build_plan, estimate_metrics
from pipelines.comparison.gate import judge_conditions
from pipelines.comparison.verdicts import find_worst_verdicts
from pipelines.config.model import Config
from pipelines.scoring.score import Scorer
from schemas.outputs import SENSITIVITY
from udfs.conventions import UNJUDGED
from udfs.registry import MetricSpec
from udfs.statistics.plan import EVERYTHING, Row
from udfs.tabulate import DRAWS

POSTERIOR, RULE, ZERO, CONDENSE = UNJUDGED  # in this order
_CONVENTION = "_convention"  # under which an estimate was scored


@dataclass(frozen=True)
class UnjudgedVariant:
    """A metric scored by another rule than the run's, and the key of the metric that it stands beside."""

    spec: MetricSpec
    unjudged: str
    metric: str


def list_variants(specs: Sequence[MetricSpec], rule: str) -> list[UnjudgedVariant]:
    """Each metric that uses labels, by every rule after that of the run.

    The parameter `judged_only` puts `zero` and `condense` into one scoring.
    """
    fit = [
        spec
        for spec in specs
        if spec.metric.scope == "list" and spec.metric.condensable and not spec.arguments["judged_only"]
    ]
    condensed = [replace(spec, overrides=(*spec.overrides, ("judged_only", True))) for spec in fit]
    return [
        *[UnjudgedVariant(spec, RULE, spec.key) for spec in fit if rule != RULE],
        *[UnjudgedVariant(spec, ZERO, spec.key) for spec in fit],
        *[UnjudgedVariant(spec, CONDENSE, plain.key) for spec, plain in zip(condensed, fit, strict=True)],
    ]


def set_unjudged(config: Config, unjudged: str) -> Config:
    """The configuration with another rule for unjudged documents, and the minimum judged share that it implies."""
    return config.model_copy(update={"conventions": config.conventions.model_copy(update={"unjudged": unjudged})})


def estimate_variants(
    rescore: Scorer, labels: DataFrame, variants: Sequence[UnjudgedVariant], config: Config
) -> dict[str, list[Row]]:
    """By rule, the estimates over all queries with unjudged documents counted in this way.

    All in one query, in which Spark brings the lists and labels of a query together once.
    """
    parts, keys = [], {}
    for convention, rules in ((RULE, (RULE,)), (ZERO, (ZERO, CONDENSE))):
        of_rules = [variant for variant in variants if variant.unjudged in rules]
        if of_rules:
            estimates = _estimate_by(convention, rescore, labels, of_rules, config)
            parts.append(estimates.withColumn(_CONVENTION, F.lit(convention)))
        for rule in rules if of_rules else ():
            keys[rule] = {(convention, variant.spec.key) for variant in of_rules if variant.unjudged == rule}
    rows = [row.asDict() for row in reduce(DataFrame.unionByName, parts).collect()] if parts else []
    return {
        rule: [row for row in rows if (row[_CONVENTION], row["metric"]) in of_rule] for rule, of_rule in keys.items()
    }


def _estimate_by(
    unjudged: str, rescore: Scorer, labels: DataFrame, variants: Sequence[UnjudgedVariant], config: Config
) -> DataFrame:
    """The estimates of these variants, scored under one convention."""
    counted = set_unjudged(config, unjudged)  # `zero` has no minimum judged share, unless one is configured
    specs = [variant.spec for variant in variants]
    judged = {key for spec in specs if counted.min_judged is not None and (key := counted.judged_key(spec))}
    again = replace(
        rescore,
        specs=[*specs, *[spec for spec in counted.specs if spec.key in judged]],
        conventions=rescore.conventions.model_copy(update={"unjudged": unjudged}),
    )
    query_metrics = again(labels)
    draws = again.draws if DRAWS in query_metrics.columns else None
    plan = build_plan(counted, rescore.systems, again.specs, draws)
    whole = replace(plan, segments=(), bootstrap=0, percentiles=False, randomisation=0)
    return estimate_metrics(query_metrics, plan=whole, cluster=config.statistics.cluster)


def build_sensitivity_rows(
    variants: Sequence[UnjudgedVariant],
    rule: str,
    estimates: Mapping[str, Sequence[Row]],
    comparisons: Sequence[Row],
    gate_rows: Sequence[Row],
    config: Config,
    systems: Sequence[str],
) -> list[Row]:
    """The rows of `sensitivity`: the run's own comparisons by its `rule`, then those by each of the other rules.

    `gate_rows` are the estimates that the gate was judged by; the judged share is taken from them.
    """
    metrics = {variant.metric for variant in variants}
    rows = [
        dict(row) | {"unjudged": rule}
        for row in comparisons
        if row["segment"] == EVERYTHING and row["metric"] in metrics
    ]
    names = {spec.key: spec.name for spec in config.specs}
    gate = tuple(condition for condition in config.gate if condition.segment == EVERYTHING)
    others = [row for row in gate_rows if row["metric"] not in metrics]
    for unjudged, of_rule in estimates.items():
        whole = set_unjudged(config, unjudged).model_copy(update={"gate": gate})
        named = {variant.spec.key: variant.metric for variant in variants if variant.unjudged == unjudged}
        renamed = [
            dict(row) | {"metric": named[row["metric"]], "metric_name": names[named[row["metric"]]]} for row in of_rule
        ]
        worst = find_worst_verdicts(judge_conditions([*renamed, *others], whole, systems, behaviour=True))
        for row in (row for row in renamed if row["baseline"] is not None):
            gated = row["baseline"] == config.compare.baseline
            verdict = worst.get((row["candidate"], EVERYTHING, EVERYTHING, row["metric"])) if gated else None
            rows.append(row | {"unjudged": unjudged, "gate": verdict})
    return [{name: row[name] for name in SENSITIVITY.names} for row in rows]
