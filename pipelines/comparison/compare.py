"""Comparisons of systems, paired by query, with p-values adjusted for the number of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config.model import Config
from schemas.outputs import COMPARISONS
from udfs.registry import parse_metric
from udfs.spark.worker import run_in_worker
from udfs.statistics.correct import CORRECTIONS
from udfs.statistics.finish import ESTIMATES_DDL

Batches = Iterable[pa.RecordBatch]
P_VALUES = ("p_value", "p_randomisation", "p_bootstrap")


@dataclass(frozen=True)
class PValueRules:
    """Which p-values are adjusted together and how, and which differences are no test at all."""

    family: frozenset[str]  # keys of the metrics whose tests, in every segment, are one family
    correction: str
    alpha: float
    across_pairs: bool = False  # the tests of all pairs are one family, rather than those of each pair
    # Metrics between the lists of a system and those of the system `earlier`, which agrees with itself by definition.
    similarities: frozenset[str] = frozenset()
    earlier: str | None = None


def build_p_value_rules(config: Config) -> PValueRules:
    """The rules of a run."""
    return PValueRules(
        family=frozenset(select_test_family(config)),
        correction=config.compare.correction,
        alpha=1 - config.statistics.confidence,
        across_pairs=config.compare.pairs == "all",
        similarities=frozenset(spec.key for spec in config.specs if spec.metric.scope == "pair"),
        earlier=config.earlier_system,
    )


def compare_systems(estimates: DataFrame, rules: PValueRules) -> DataFrame:
    """The estimates of pairs as `comparisons`, still without the gate's verdicts."""
    pairs = estimates.where(F.col("baseline").isNotNull())
    adjusted = pairs.coalesce(1).mapInArrow(  # a family must be adjusted as a whole, and is small
        run_in_worker(adjust_p_values(rules)), f"{ESTIMATES_DDL}, p_adjusted double, significant boolean"
    )
    nothing = F.lit(None).cast("string")
    return adjusted.withColumns({"gate": nothing, "condition": nothing}).select(*COMPARISONS.names)


def select_test_family(config: Config) -> list[str]:
    """Keys of the metrics whose tests are adjusted together; list similarity is no test of which system is better."""
    gated = [condition.metric for condition in config.gate]
    names = gated if gated and config.compare.family == "gate" else config.metrics
    return list(dict.fromkeys(spec.key for spec in map(parse_metric, names) if spec.metric.scope == "list"))


def adjust_p_values(rules: PValueRules) -> Callable[[Batches], Batches]:
    """The function from all estimates of pairs to the same with adjusted p-values."""

    def run(batches: Batches) -> Batches:
        received = list(batches)
        if not received:
            return
        table = _remove_self_tests(pa.Table.from_batches(received), rules)
        in_family = np.isin(table["metric"].to_numpy(zero_copy_only=False), list(rules.family))
        p = np.where(in_family, table["p_value"].to_numpy(), np.nan)
        families: dict[tuple[str, str] | None, list[int]] = {}
        pairs = zip(table["baseline"].to_pylist(), table["candidate"].to_pylist(), strict=True)
        for row, pair in enumerate(pairs):
            families.setdefault(None if rules.across_pairs else pair, []).append(row)
        adjusted = np.full(len(p), np.nan)
        for rows in families.values():
            adjusted[rows] = CORRECTIONS[rules.correction](p[rows])
        significant = pa.array(adjusted < rules.alpha, mask=np.isnan(adjusted))
        table = table.append_column("p_adjusted", pa.array(adjusted, from_pandas=True))
        yield from table.append_column("significant", significant).to_batches()

    return run


def _remove_self_tests(table: pa.Table, rules: PValueRules) -> pa.Table:
    """The estimates without p-values where one side is the similarity of a system to itself."""
    earlier = pa.scalar(rules.earlier, pa.string())
    of_itself = pc.or_(pc.equal(table["baseline"], earlier), pc.equal(table["candidate"], earlier))
    similarity = pc.is_in(table["metric"], pa.array(list(rules.similarities), pa.string()))
    no_test = pc.and_(similarity, pc.fill_null(of_itself, False))
    for name in P_VALUES:
        kept = pc.if_else(no_test, pa.scalar(None, pa.float64()), table[name])
        table = table.set_column(table.schema.get_field_index(name), name, kept)
    return table
