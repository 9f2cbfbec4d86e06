"""The queries that gained and lost most between two systems, and which documents moved there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.order import order
from schemas.outputs import QUERY_CHANGES
from udfs.conventions import Conventions
from udfs.registry import Spec

DOCUMENTS = 5  # moved documents that are spelled out per query
DEPTH = 10  # how far down moves are looked for where a metric has no cut-off


def changes(
    query_metrics: DataFrame, *, pairs: Sequence[tuple[str, str]], specs: Sequence[Spec], most: int
) -> DataFrame:
    """Per pair and metric, the `most` largest gains and losses."""
    return reduce(DataFrame.unionByName, [_changed(query_metrics, pair, specs, most) for pair in pairs])


def with_moves(
    changed: DataFrame, rankings: DataFrame, labels: DataFrame, *, specs: Sequence[Spec], conventions: Conventions
) -> DataFrame:
    """The changed queries with the documents that moved; only their lists are put in order again."""
    wanted = F.broadcast(changed.select("query_id").distinct())
    ranked = order(rankings.join(wanted, "query_id", "left_semi"), conventions)
    lists = ranked.groupBy("system", "query_id", "doc_id").agg(F.min("rank").alias("rank"))
    graded = labels.join(wanted, "query_id", "left_semi")
    grades = graded.groupBy("query_id", "doc_id").agg(F.max("grade").alias("grade"))
    moved = _moved(changed, lists, grades, {spec.key: spec.k or DEPTH for spec in specs})
    tops = _tops(lists, grades)
    key = ["baseline", "candidate", "metric", "query_id"]
    rows = changed.join(moved, key, "left")
    for side in ("baseline", "candidate"):
        mine = tops.select(F.col("system").alias(side), "query_id", F.col("top").alias(f"{side}_top"))
        rows = rows.join(mine, [side, "query_id"], "left")
    return rows.select(*QUERY_CHANGES.names)


def _tops(lists: DataFrame, grades: DataFrame) -> DataFrame:
    """Per list its first documents with their grades, as JSON; grades that nobody gave are left out of it."""
    shown = lists.where(F.col("rank") <= DEPTH).join(grades, ["query_id", "doc_id"], "left")
    entries = F.sort_array(F.collect_list(F.struct("rank", "doc_id", F.col("grade").cast("double").alias("grade"))))
    top = F.to_json(F.transform(entries, lambda entry: entry.dropFields("rank")))
    return shown.groupBy("system", "query_id").agg(top.alias("top"))


def _changed(rows: DataFrame, pair: tuple[str, str], specs: Sequence[Spec], most: int) -> DataFrame:
    """The largest changes of one pair; equal ones by query_id, so that the answer is one whatever the order."""
    keys = [spec.key for spec in specs]
    baseline, candidate = (
        rows.where(F.col("system") == system).select(
            "query_id", F.col("weight").alias(f"weight_{side}"), *[F.col(key).alias(f"{key}_{side}") for key in keys]
        )
        for system, side in zip(pair, ("b", "c"), strict=True)
    )
    values = [
        F.struct(
            F.lit(key).alias("metric"),
            F.col(f"{key}_b").alias("baseline_value"),
            F.col(f"{key}_c").alias("candidate_value"),
        )
        for key in keys
    ]
    paired = baseline.join(candidate, "query_id").select(
        "query_id", F.col("weight_b").alias("weight"), F.explode(F.array(*values)).alias("of")
    )
    delta = F.col("candidate_value") - F.col("baseline_value")
    each = (
        paired.select("query_id", "weight", "of.*")
        .select("*", delta.alias("delta"), F.when(delta > 0, "gain").when(delta < 0, "loss").alias("direction"))
        .where(F.col("direction").isNotNull())
    )
    largest = Window.partitionBy("metric", "direction").orderBy(F.desc(F.abs("delta")), "query_id")
    return (
        each.withColumn("place", F.row_number().over(largest))
        .where(F.col("place") <= most)
        .select(F.lit(pair[0]).alias("baseline"), F.lit(pair[1]).alias("candidate"), "*")
    )


def _moved(changed: DataFrame, lists: DataFrame, grades: DataFrame, depths: dict[str, int]) -> DataFrame:
    """Per changed query, its moved documents in words: doc_id (grade) 7 → 1; – for a place outside the list."""
    asked = changed.select("baseline", "candidate", "metric", "query_id")
    key = ["baseline", "candidate", "metric", "query_id"]

    def side(name: str) -> DataFrame:
        ranked = lists.select(F.col("system").alias(name), "query_id", "doc_id", F.col("rank").alias(f"rank_{name}"))
        return asked.join(ranked, [name, "query_id"])

    deep = reduce(
        lambda so_far, item: so_far.when(F.col("metric") == item[0], F.lit(item[1])),
        depths.items(),
        F.when(F.lit(False), 0),
    )
    both = (
        side("baseline").join(side("candidate"), [*key, "doc_id"], "full").join(grades, ["query_id", "doc_id"], "left")
    )
    before, after = F.col("rank_baseline"), F.col("rank_candidate")
    best = F.least(before, after)  # least skips nulls
    noticed = both.where((best <= deep) & ~before.eqNullSafe(after))
    best_first = Window.partitionBy(*key).orderBy(F.desc_nulls_last("grade"), best, "doc_id")
    shown = noticed.withColumn("at", F.row_number().over(best_first)).where(F.col("at") <= DOCUMENTS)
    line = F.format_string("%s (%s) %s → %s", "doc_id", _text(F.col("grade"), "?"), _text(before), _text(after))
    lines = F.sort_array(F.collect_list(F.struct("at", line.alias("line"))))
    return shown.groupBy(*key).agg(F.concat_ws("; ", lines.getField("line")).alias("moved"))


def _text(number: Column, missing: str = "–") -> Column:
    return F.when(number.isNull(), F.lit(missing)).otherwise(F.format_string("%.0f", number.cast("double")))
