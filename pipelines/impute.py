"""Labels that are estimates: draw them several times, score again, and add what that moves to the errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.config import Config
from pipelines.estimate import estimate
from pipelines.grade import by_cuts
from pipelines.label_config import GradeSettings
from udfs.ragged import Floats
from udfs.statistics.finish import ESTIMATES_DDL
from udfs.statistics.plan import Plan
from udfs.statistics.power import detectable
from udfs.statistics.ratio import Estimate
from udfs.statistics.rubin import with_label_error
from udfs.worker import settled

Batches = Iterable[pa.RecordBatch]
_KEY = ["baseline", "candidate", "segment", "value", "metric"]
_NAME = "{draw}\0{system}"
_BOUND = 1.6448536269514722  # of a standard normal: 5 % lie above it, as published bounds have it


def redrawer(
    labels: DataFrame, published: DataFrame | None, config: Config, max_grade: float | None
) -> Callable[[int], DataFrame]:
    """The function that draws the labels once more; `published` are those that were made from behaviour."""
    seed = config.statistics.seed
    if published is not None:
        return lambda draw: drawn_behaviour(published, config.labels.grade, draw=draw, seed=seed)
    return lambda draw: drawn_judgments(labels, draw=draw, seed=seed, max_grade=max_grade)


def drawn_judgments(labels: DataFrame, *, draw: int, seed: int, max_grade: float | None) -> DataFrame:
    """The labels with each grade drawn from a normal around it, as wide as `grade_sd`, within the scale."""
    grade = F.greatest(F.lit(0.0), F.col("grade") + F.coalesce("grade_sd", F.lit(0.0)) * _noise(draw, seed))
    return labels.withColumn("grade", grade if max_grade is None else F.least(F.lit(max_grade), grade))


def drawn_behaviour(labels: DataFrame, settings: GradeSettings, *, draw: int, seed: int) -> DataFrame:
    """Published labels graded anew, each by a relevance drawn from its posterior.

    That is a Gamma, whose cube root is nearly normal (Wilson and Hilferty 1931), so that the published bounds say
    which. What people judged, and what purchases and carts promoted, stays.
    """
    low, high = F.cbrt("relevance_low"), F.cbrt("relevance_high")
    root = (low + high) / 2 + (high - low) / (2 * _BOUND) * _noise(draw, seed)
    lift = F.pow(F.greatest(root, F.lit(0.0)), F.lit(3.0)) * F.col("lift_click") / F.col("relevance")
    if settings.scale == "lift":
        grade = lift
    else:
        promoted = F.when(F.col("reason").startswith("promoted"), F.col("grade")).otherwise(0)
        grade = F.greatest(by_cuts(lift, settings.cuts), promoted).cast("double")
    value = F.when(F.col("source") == "human", F.col("grade").cast("double")).otherwise(grade)
    return labels.where("grade IS NOT NULL").select("query_id", "doc_id", value.alias("grade"))


def with_label_errors(
    estimates: DataFrame,
    cut: DataFrame,
    redraw: Callable[[int], DataFrame],
    rescore: Callable[[DataFrame], DataFrame],
    *,
    plan: Plan,
    draws: int,
) -> DataFrame:
    """The estimates with the errors of pairs widened by how far they move between draws of the labels.

    `cut` holds the query metrics on the labels as they are: segments and weights are taken from there.
    """
    names = [[_NAME.format(draw=draw, system=system) for system in plan.systems] for draw in range(draws)]
    of_query = cut.select("system", "query_id", "weight", *plan.columns)
    scored = [
        rescore(redraw(draw))
        .select("system", "query_id", *plan.numbers)
        .join(of_query, ["system", "query_id"])
        .withColumn("system", F.concat(F.lit(_NAME.format(draw=draw, system="")), F.col("system")))
        for draw in range(draws)
    ]
    wide = replace(
        plan,
        systems=tuple(name for every in names for name in every),
        pairs=tuple(
            (_NAME.format(draw=draw, system=b), _NAME.format(draw=draw, system=c))
            for draw in range(draws)
            for b, c in plan.pairs
        ),
        clustered=False,  # only the middles are used
        bootstrap=0,
        percentiles=False,
        randomisation=0,
    )
    redrawn = estimate(reduce(DataFrame.unionByName, scored), plan=wide, scattered=True).where("baseline IS NOT NULL")
    plain = [F.substring_index(F.col(name), "\0", -1).alias(name) for name in ("baseline", "candidate")]
    between = (
        redrawn.select(*plain, *_KEY[2:], "delta", "relative")
        .groupBy(*_KEY)
        .agg(*[F.var_samp(name).alias(f"{name}_between") for name in ("delta", "relative")])
    )
    spread = [f"{name}_between" for name in ("delta", "relative")]
    joined = estimates.join(F.broadcast(between), _KEY, "left").select(*estimates.columns, *spread)
    return joined.mapInArrow(settled(_widened(draws, plan.confidence)), ESTIMATES_DDL)


def _widened(draws: int, confidence: float) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            columns = {name: batch.column(name) for name in batch.schema.names if not name.endswith("_between")}

            def total(value: str, stderr: str, batch: pa.RecordBatch = batch) -> Estimate:
                plain = Estimate(*(_floats(batch, name) for name in (value, stderr, "degrees")))
                return with_label_error(plain, np.nan_to_num(_floats(batch, f"{value}_between")), draws)

            delta, relative = total("delta", "stderr"), total("relative", "relative_stderr")
            low, high = delta.interval(confidence)
            made = {"stderr": delta.stderr, "degrees": delta.degrees, "delta_low": low, "delta_high": high}
            made |= {"p_value": delta.p_value(), "detectable_delta": detectable(delta.stderr)}
            made |= {"relative_stderr": relative.stderr}
            known = ~np.isnan(_floats(batch, "delta_between"))
            for name, values in made.items():
                columns[name] = pa.array(np.where(known, values, _floats(batch, name)), from_pandas=True)
            yield pa.RecordBatch.from_pydict(columns)

    return run


def _floats(batch: pa.RecordBatch, name: str) -> Floats:
    floats: Floats = batch.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
    return floats


def _noise(draw: int, seed: int) -> Column:
    """A standard normal number for each label of a draw."""
    return _normal(F.lit(draw), F.lit(seed), F.col("query_id"), F.col("doc_id"))


def _normal(*parts: Column) -> Column:
    """A standard normal number from a hash of the parts, by Box and Muller."""
    one, two = (_uniform(F.xxhash64(*parts, F.lit(half))) for half in (1, 2))
    return F.sqrt(-2.0 * F.log(one)) * F.cos(two * (2 * math.pi))


def _uniform(number: Column) -> Column:
    """Above 0 and at most 1, from the upper 53 bits."""
    return (F.shiftrightunsigned(number, 11).cast("double") + 1.0) * 2.0**-53
