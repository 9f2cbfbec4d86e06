"""How alike the answers of two systems are, whatever the labels say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.estimate import estimate
from pipelines.score import order
from schemas.outputs import AGREEMENTS
from udfs.agreement import agree_lists
from udfs.conventions import Conventions
from udfs.registry import Spec
from udfs.statistics.plan import Plan


def agree(
    rankings: DataFrame, *, pairs: Sequence[tuple[str, str]], specs: Sequence[Spec], conventions: Conventions
) -> DataFrame:
    """The mean of every measure over the queries that either system of a pair answers."""
    lists = (
        order(rankings, conventions)
        .groupBy("query_id", "system")
        .agg(F.collect_list("rank").alias("rank"), F.collect_list("doc").alias("doc"))
    )
    columns = ", ".join(f"{spec.key} double" for spec in specs)
    both = reduce(DataFrame.unionByName, [_paired(lists, pair, str(at)) for at, pair in enumerate(pairs)])
    scored = both.mapInArrow(
        agree_lists([spec.name for spec in specs], conventions),
        f"system string, query_id string, weight double, {columns}",
    )
    plan = Plan(systems=tuple(map(str, range(len(pairs)))), metrics=tuple(spec.key for spec in specs))
    named = F.create_map(*[F.lit(part) for at, pair in enumerate(pairs) for part in (str(at), "\0".join(pair))])
    pair = F.split(named[F.col("candidate")], "\0")
    means = estimate(scored, plan=plan)
    return means.withColumns({"baseline": pair[0], "candidate": pair[1]}).select(*AGREEMENTS.names)


def _paired(lists: DataFrame, pair: tuple[str, str], name: str) -> DataFrame:
    """One row per query that either system answers; the candidate's list first, as the later of the two."""
    candidate, baseline = (
        lists.where(F.col("system") == system).select(
            "query_id", F.col("rank").alias(f"{side}rank"), F.col("doc").alias(f"{side}doc")
        )
        for system, side in zip(reversed(pair), ("", "other_"), strict=True)
    )
    joined = candidate.join(baseline, "query_id", "full")
    kinds = {"rank": "array<int>", "doc": "array<bigint>", "other_rank": "array<int>", "other_doc": "array<bigint>"}
    filled = [F.coalesce(column, F.array().cast(kind)).alias(column) for column, kind in kinds.items()]
    return joined.select(F.lit(name).alias("system"), "query_id", F.lit(1.0).alias("weight"), *filled)
