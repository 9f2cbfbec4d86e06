"""The posterior of every document of the pool: a prior fitted on ranks, and the evidence of the log.

One pass over the pool sums it up by the bins of the ranks; one small task fits the prior and its draws, which have the
same size for any log; a second pass describes the posterior of every document.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType

from pyspark.sql import DataFrame

from pipelines.labels.opinions import (
    add_opinions,
    cast_numbers,
    choose_scales,
    list_opinions,
    list_subsets,
    measure_gains,
    name_levels,
    select_opinions,
)
from pipelines.labels.pool import LogEvidence, add_rates, build_pool, plan_factors
from pipelines.labels.settings import GradeSettings
from pipelines.warehouse.attempt import Attempt
from schemas.outputs import LABEL_POSTERIORS, LABEL_PRIOR
from udfs.conventions import Conventions
from udfs.posterior.factors import KNOWN, Factor, cross_levels
from udfs.posterior.fit import Prior
from udfs.posterior.opinions import OpinionGain
from udfs.spark.prior import (
    PARTIAL_DDL,
    POSTERIOR_DDL,
    PRIOR_DDL,
    describe_pool,
    fit_partials,
    tabulate_pool,
)
from udfs.spark.worker import run_in_worker


@dataclass(frozen=True)
class LabelPosterior:
    """The fitted prior, and the labels of the pool with their evidence: query_id, doc_id, grade, evidence."""

    prior: Prior
    labels: DataFrame
    gains: tuple[OpinionGain, ...] = ()  # of all opinions, then of each of several


def publish_posterior(
    attempt: Attempt,
    log: LogEvidence,
    labels: DataFrame,
    lists: DataFrame,
    settings: GradeSettings,
    *,
    conventions: Conventions,
    systems: Sequence[str],
    not_vouched: Sequence[str],
    other_days: Sequence[str],
    top: int,
    draws: int,
    seed: int,
    opinions: DataFrame | None = None,
) -> LabelPosterior:
    """Fit the prior of a run's pool, and publish it with the posterior of every document.

    `lists` are those of `systems`, as `build_pool` takes them; `top` is the largest cut-off. `not_vouched` are the
    systems that may have learned from clicks, `other_days` those of them that learned from none of this evidence.
    Columns of `opinions` beside the key are factors of the prior.
    """
    plan = plan_factors(log.traffic, systems)
    outside = None if opinions is None else select_opinions(opinions)
    rows = build_pool(log, labels, lists, plan, conventions=conventions, top=top, opinions=outside)
    pool = add_rates(attempt.checkpoint(rows), settings.query_prior)
    scales = choose_scales(pool, list_opinions(opinions))
    plan, pool = add_opinions(plan, scales), cast_numbers(pool, scales)
    subsets = list_subsets(plan)
    exponent = log.exponent.first()
    fit = fit_partials(
        plan,
        draws=draws,
        seed=seed,
        exponent_sd=float(exponent["exponent_sd"]) if exponent is not None else 0.0,
        not_vouched=tuple(not_vouched),
        other_days=tuple(other_days),
        without=subsets,
    )
    partials = pool.mapInArrow(run_in_worker(tabulate_pool(plan, scales)), PARTIAL_DDL).repartition(1)
    fitted = partials.mapInArrow(run_in_worker(fit), PRIOR_DDL).collect()
    # Written by our own worker.
    prior, *others = [pickle.loads(row["prior"]) for row in sorted(fitted, key=itemgetter("subset"))]
    attempt.write_rows(LABEL_PRIOR, describe_prior(prior, name_levels(scales)))
    describe = run_in_worker(describe_pool(prior, settings.cuts, scales))
    described = attempt.checkpoint(pool.repartition("query_id").mapInArrow(describe, POSTERIOR_DDL))
    attempt.write("label_posteriors", described.select(*LABEL_POSTERIORS.names))
    return LabelPosterior(
        prior=prior,
        labels=described.select("query_id", "doc_id", "grade", "evidence"),
        gains=measure_gains(pool, prior, dict(zip(subsets, others, strict=True)), scales),
    )


def describe_prior(
    prior: Prior, level_names: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> list[dict[str, object]]:
    """The table `label_prior`: the effect of every level of every factor, with the evidence behind it.

    `level_names` has the names of the levels of opinions.
    """
    offsets, rows = prior.offsets, []
    for number, factor in enumerate(prior.plan.factors):
        for place, level in enumerate(_name_levels(factor, level_names)):
            at = int(offsets[number]) + place
            if prior.expected[at] > 0 or prior.clicks[at] > 0:
                values = (prior.effects, prior.low, prior.high, prior.clicks, prior.expected)
                row: tuple[object, ...] = (factor.name, factor.kind, level, *(float(value[at]) for value in values))
                rows.append(dict(zip(LABEL_PRIOR.names, row, strict=True)))
    return rows


def _name_levels(factor: Factor, level_names: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The levels of a factor, those of an opinion by their names."""
    names = level_names.get(factor.sources[0])
    if names is None:
        return factor.levels
    return names if factor.kind == "opinion" else cross_levels(names, KNOWN)
