"""How far an answer rests on the rule for unjudged documents: the same comparisons by the two other ways to count them.

The rule cuts a list at k and takes the unjudged out of what is left. Counting them as 0 favours the system whose
results were shown and so could be judged; taking them out before the cut favours a newcomer, whose known documents move
up. What holds by all three does not rest on the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from pipelines.config import Config
from pipelines.estimate import estimate, plan_of
from pipelines.gate import Row, judge, worst_verdicts
from pipelines.rescore import Scorer
from schemas.outputs import SENSITIVITY
from udfs.registry import Spec
from udfs.statistics.plan import EVERYTHING

RULE, ZERO, CONDENSE = "cut_then_condense", "zero", "condense"


@dataclass(frozen=True)
class Way:
    """A metric scored by another rule than the run's, and the key of the metric that it stands beside."""

    spec: Spec
    unjudged: str
    metric: str


def ways_of(specs: Sequence[Spec]) -> list[Way]:
    """Each metric that looks at labels, by both other rules: its own parameter condenses, so one scoring has both."""
    fit = [
        spec
        for spec in specs
        if spec.metric.scope == "list" and spec.metric.condensable and not spec.arguments["judged_only"]
    ]
    condensed = [replace(spec, given=(*spec.given, ("judged_only", True))) for spec in fit]
    return [
        *[Way(spec, ZERO, spec.key) for spec in fit],
        *[Way(spec, CONDENSE, plain.key) for spec, plain in zip(condensed, fit, strict=True)],
    ]


def estimate_otherwise(rescore: Scorer, labels: DataFrame, ways: Sequence[Way], config: Config) -> DataFrame:
    """What the run would estimate over all queries if unjudged documents were counted in these ways."""
    conventions = config.conventions.model_copy(update={"unjudged": ZERO})
    counted = config.model_copy(update={"conventions": conventions})  # then no query is left out, unless so configured
    plan = plan_of(counted, rescore.systems, [way.spec for way in ways])
    whole = replace(plan, segments=(), bootstrap=0, percentiles=False, randomisation=0)
    judged = [spec for spec in counted.specs if spec.key in plan.judged]
    again = replace(
        rescore,
        specs=[*[way.spec for way in ways], *judged],
        conventions=rescore.conventions.model_copy(update={"unjudged": ZERO}),
    )
    return estimate(again(labels), plan=whole, cluster=config.statistics.cluster)


def beside_the_rule(
    ways: Sequence[Way],
    estimates: Sequence[Row],
    comparisons: Sequence[Row],
    gated: Sequence[Row],
    config: Config,
    systems: Sequence[str],
) -> list[Row]:
    """The rows of `sensitivity`: what the run says, and what it would say by each of the other ways.

    `gated` are the estimates that the gate was judged by, for the share that is judged.
    """
    metrics = {way.metric for way in ways}
    rows = [
        dict(row) | {"unjudged": RULE}
        for row in comparisons
        if row["segment"] == EVERYTHING and row["metric"] in metrics
    ]
    whole = config.model_copy(update={"gate": tuple(c for c in config.gate if c.segment == EVERYTHING)})
    others = [row for row in gated if row["metric"] not in metrics]
    for unjudged in (ZERO, CONDENSE):
        named = {way.spec.key: way.metric for way in ways if way.unjudged == unjudged}
        mine = [dict(row) | {"metric": named[row["metric"]]} for row in estimates if row["metric"] in named]
        said = worst_verdicts(judge([*mine, *others], whole, systems, behaviour=True))
        for row in (row for row in mine if row["baseline"] is not None):
            known = row["baseline"] == config.compare.baseline
            verdict = said.get((row["candidate"], EVERYTHING, EVERYTHING, row["metric"])) if known else None
            rows.append(row | {"unjudged": unjudged, "gate": verdict})
    return [{name: row[name] for name in SENSITIVITY.names} for row in rows]
