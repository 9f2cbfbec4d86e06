"""Comparisons of systems, paired by query, and adjusted for the number of tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config import Config
from schemas.outputs import COMPARISONS
from udfs.registry import parse
from udfs.statistics.correct import CORRECTIONS
from udfs.statistics.finish import ESTIMATES_DDL
from udfs.worker import settled

Batches = Iterable[pa.RecordBatch]


def compare(estimates: DataFrame, *, family: Collection[str], correction: str, confidence: float) -> DataFrame:
    """The estimates of pairs, as they are published but for the gate's verdicts.

    The p-values of one pair's `family` of metrics, in every segment, are adjusted together.
    """
    pairs = estimates.where(F.col("baseline").isNotNull())
    adjusted = pairs.coalesce(1).mapInArrow(  # a family must be seen as a whole, and is small
        settled(_adjust(frozenset(family), correction, 1 - confidence)),
        f"{ESTIMATES_DDL}, p_adjusted double, significant boolean",
    )
    return adjusted.withColumn("gate", F.lit(None).cast("string")).select(*COMPARISONS.names)


def family_of(config: Config) -> list[str]:
    """Keys of the metrics whose tests are adjusted together; how alike two lists are is no test of which is better."""
    gated = [condition.metric for condition in config.gate]
    chosen = gated if gated and config.compare.family == "gate" else config.metrics
    return list(dict.fromkeys(spec.key for spec in map(parse, chosen) if spec.metric.scope == "list"))


def _adjust(family: frozenset[str], correction: str, alpha: float) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        held = list(batches)
        if not held:
            return
        table = pa.Table.from_batches(held)
        p = np.where(
            np.isin(table["metric"].to_numpy(zero_copy_only=False), list(family)), table["p_value"].to_numpy(), np.nan
        )
        pair = [f"{b}\0{c}" for b, c in zip(table["baseline"].to_pylist(), table["candidate"].to_pylist(), strict=True)]
        adjusted = np.full(len(p), np.nan)
        for each in sorted(set(pair)):
            rows = np.flatnonzero(np.array(pair, dtype=object) == each)
            adjusted[rows] = CORRECTIONS[correction](p[rows])
        significant = pa.array(adjusted < alpha, mask=np.isnan(adjusted))
        table = table.append_column("p_adjusted", pa.array(adjusted, from_pandas=True))
        yield from table.append_column("significant", significant).to_batches()

    return run
