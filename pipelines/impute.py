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

from pipelines.estimate import estimate
from udfs.statistics.finish import ESTIMATES_DDL
from udfs.statistics.plan import Plan
from udfs.statistics.power import detectable
from udfs.statistics.ratio import Estimate
from udfs.statistics.rubin import with_label_error
from udfs.worker import settled

Batches = Iterable[pa.RecordBatch]
_KEY = ["baseline", "candidate", "segment", "value", "metric"]
_NAME = "{draw}\0{system}"


def drawn(labels: DataFrame, *, draw: int, seed: int, max_grade: float | None) -> DataFrame:
    """The labels with each grade drawn from a normal around it, as wide as `grade_sd`, within the scale."""
    shift = F.coalesce("grade_sd", F.lit(0.0)) * _normal(F.lit(draw), F.lit(seed), F.col("query_id"), F.col("doc_id"))
    grade = F.greatest(F.lit(0.0), F.col("grade") + shift)
    return labels.withColumn("grade", grade if max_grade is None else F.least(F.lit(max_grade), grade))


def with_label_errors(
    estimates: DataFrame,
    cut: DataFrame,
    labels: DataFrame,
    rescore: Callable[[DataFrame], DataFrame],
    *,
    plan: Plan,
    draws: int,
    max_grade: float | None,
) -> DataFrame:
    """The estimates with the errors of pairs widened by how far they move between draws of the labels.

    `cut` holds the query metrics on the labels as they are: segments and weights are taken from there.
    """
    names = [[_NAME.format(draw=draw, system=system) for system in plan.systems] for draw in range(draws)]
    of_query = cut.select("system", "query_id", "weight", *plan.columns)
    scored = [
        rescore(drawn(labels, draw=draw, seed=plan.seed, max_grade=max_grade))
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
    between = redrawn.select(*plain, *_KEY[2:], "delta").groupBy(*_KEY).agg(F.var_samp("delta").alias("between"))
    joined = estimates.join(F.broadcast(between), _KEY, "left").select(*estimates.columns, "between")
    return joined.mapInArrow(settled(_widened(draws, plan.confidence)), ESTIMATES_DDL)


def _widened(draws: int, confidence: float) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            columns = {name: batch.column(name) for name in batch.schema.names if name != "between"}
            numbers = {
                name: batch.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
                for name in ("delta", "stderr", "degrees", "between")
            }
            known = ~np.isnan(numbers["between"])
            before = Estimate(numbers["delta"], numbers["stderr"], numbers["degrees"])
            total = with_label_error(before, np.nan_to_num(numbers["between"]), draws)
            low, high = total.interval(confidence)
            made = {"stderr": total.stderr, "degrees": total.degrees, "delta_low": low, "delta_high": high}
            made |= {"p_value": total.p_value(), "detectable_delta": detectable(total.stderr)}
            for name, values in made.items():
                old = columns[name].to_numpy(zero_copy_only=False).astype(np.float64)
                columns[name] = pa.array(np.where(known, values, old), from_pandas=True)
            yield pa.RecordBatch.from_pydict(columns)

    return run


def _normal(*parts: Column) -> Column:
    """A standard normal number from a hash of the parts, by Box and Muller."""
    one, two = (_uniform(F.xxhash64(*parts, F.lit(half))) for half in (1, 2))
    return F.sqrt(-2.0 * F.log(one)) * F.cos(two * (2 * math.pi))


def _uniform(number: Column) -> Column:
    """Above 0 and at most 1, from the upper 53 bits."""
    return (F.shiftrightunsigned(number, 11).cast("double") + 1.0) * 2.0**-53
