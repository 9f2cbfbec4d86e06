"""The queries that gained and lost most between two systems, and which documents moved there."""

from __future__ import annotations

from collections.abc import Sequence

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
    """Per pair and metric, the `most` largest gains and losses; equal ones by query_id, so that the answer is one.

    The rows of a query come together once, however many pairs there are.
    """
    keys = [spec.key for spec in specs]
    rows = query_metrics.where(F.col("system").isin(*{system for pair in pairs for system in pair}))
    by_query = _by_system(rows, ["query_id"], F.struct("weight", *keys), "of")
    of = F.col("of")
    compared = [
        F.struct(
            F.lit(baseline).alias("baseline"),
            F.lit(candidate).alias("candidate"),
            F.lit(key).alias("metric"),
            of[baseline]["weight"].alias("weight"),
            of[baseline][key].alias("baseline_value"),
            of[candidate][key].alias("candidate_value"),
        )
        for baseline, candidate in pairs
        for key in keys
    ]
    delta = F.col("candidate_value") - F.col("baseline_value")
    each = (
        by_query.select("query_id", F.explode(F.array(*compared)).alias("compared"))
        .select("query_id", "compared.*")
        .select("*", delta.alias("delta"), F.when(delta > 0, "gain").when(delta < 0, "loss").alias("direction"))
        .where(F.col("direction").isNotNull())
    )
    same = Window.partitionBy("baseline", "candidate", "metric", "direction")
    largest = same.orderBy(F.desc(F.abs("delta")), "query_id")
    return each.withColumn("place", F.row_number().over(largest)).where(F.col("place") <= most)


def with_moves(
    changed: DataFrame, rankings: DataFrame, labels: DataFrame, *, specs: Sequence[Spec], conventions: Conventions
) -> DataFrame:
    """The changed queries with the documents that moved; only their lists are put in order again."""
    wanted = F.broadcast(changed.select("query_id").distinct())
    ranked = order(rankings.join(wanted, "query_id", "left_semi"), conventions)
    once = ranked.groupBy("query_id", "doc_id", "system").agg(F.min("rank").alias("rank"))
    graded = labels.join(wanted, "query_id", "left_semi").repartition("query_id")
    grades = graded.groupBy("query_id", "doc_id").agg(F.max("grade").alias("grade"))
    lists = _by_system(once, ["query_id", "doc_id"], F.col("rank"), "ranks").join(
        grades, ["query_id", "doc_id"], "left"
    )
    both = _both(changed, lists)
    moved = _moved(both, {spec.key: spec.k or DEPTH for spec in specs})
    return changed.join(moved, _CHANGE, "left").join(_tops(both), _CHANGE, "left").select(*QUERY_CHANGES.names)


_CHANGE = ["baseline", "candidate", "metric", "query_id"]


def _by_system(rows: DataFrame, keys: Sequence[str], value: Column, name: str) -> DataFrame:
    """One row per key, with a map called `name` from each system to its value."""
    entries = F.collect_list(F.struct("system", value.alias("value")))
    return rows.groupBy(*keys).agg(F.map_from_entries(entries).alias(name))


def _both(changed: DataFrame, lists: DataFrame) -> DataFrame:
    """Per changed query its documents, each with its grade and its place in both lists."""
    return lists.join(F.broadcast(changed.select(*_CHANGE)), "query_id").select(
        *_CHANGE,
        "doc_id",
        "grade",
        F.col("ranks")[F.col("baseline")].alias("before"),
        F.col("ranks")[F.col("candidate")].alias("after"),
    )


def _tops(both: DataFrame) -> DataFrame:
    """Per changed query the first documents of both lists with their grades, as JSON; unjudged ones have no grade."""
    tops = {"baseline_top": _top("before"), "candidate_top": _top("after")}
    return both.groupBy(*_CHANGE).agg(*[top.alias(name) for name, top in tops.items()])


def _top(rank: str) -> Column:
    """The first documents of a list in order, each as doc_id and grade; an aggregate."""
    entry = F.struct(rank, "doc_id", F.col("grade").cast("double").alias("grade"))
    first = F.sort_array(F.collect_list(F.when(F.col(rank) <= DEPTH, entry)))
    return F.to_json(F.transform(first, lambda of: of.dropFields(rank)))


def _moved(both: DataFrame, depths: dict[str, int]) -> DataFrame:
    """Per changed query, its moved documents in words: doc_id (grade) 7 → 1; – for a place outside the list."""
    deep = F.lit(0)
    for metric, depth in depths.items():
        deep = F.when(F.col("metric") == metric, F.lit(depth)).otherwise(deep)
    before, after = F.col("before"), F.col("after")
    best = F.least(before, after)  # least skips nulls
    noticed = both.where((best <= deep) & ~before.eqNullSafe(after))
    best_first = Window.partitionBy(*_CHANGE).orderBy(F.desc_nulls_last("grade"), best, "doc_id")
    shown = noticed.withColumn("at", F.row_number().over(best_first)).where(F.col("at") <= DOCUMENTS)
    line = F.format_string("%s (%s) %s → %s", "doc_id", _text(F.col("grade"), "?"), _text(before), _text(after))
    lines = F.sort_array(F.collect_list(F.struct("at", line.alias("line"))))
    return shown.groupBy(*_CHANGE).agg(F.concat_ws("; ", lines.getField("line")).alias("moved"))


def _text(number: Column, missing: str = "–") -> Column:
    return F.when(number.isNull(), F.lit(missing)).otherwise(F.format_string("%.0f", number.cast("double")))
