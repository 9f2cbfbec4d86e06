"""The queries that gained and lost most between two systems, and which documents moved there."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.order import order
from schemas.outputs import QUERY_CHANGES
from udfs.conventions import Conventions
from udfs.registry import Spec
from udfs.statistics.plan import RETRIEVED, TIE, Plan

DOCUMENTS = 5  # moved documents that are spelled out per query
DEPTH = 10  # how far down moves are looked for where a metric has no cut-off


def changes(query_metrics: DataFrame, *, plan: Plan, keys: Sequence[str], most: int) -> DataFrame:
    """Per pair and metric, the `most` largest gains and losses; equal ones by query_id, so that the answer is one.

    Only queries that count in the comparison are looked at. The rows of a query come together once, however many
    pairs there are.
    """
    rows = query_metrics.where(F.col("system").isin(*{system for pair in plan.pairs for system in pair}))
    by_query = _by_system(rows, ["query_id"], F.struct("weight", *[_counted(key, plan) for key in keys]), "of")
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
        for baseline, candidate in plan.pairs
        for key in keys
    ]
    delta = F.col("candidate_value") - F.col("baseline_value")
    each = (
        by_query.select("query_id", F.explode(F.array(*compared)).alias("compared"))
        .select("query_id", "compared.*")
        .select("*", delta.alias("delta"), F.when(delta > TIE, "gain").when(delta < -TIE, "loss").alias("direction"))
        .where(F.col("direction").isNotNull())
    )
    same = Window.partitionBy("baseline", "candidate", "metric", "direction")
    largest = same.orderBy(F.desc(F.abs("delta")), "query_id")
    return each.withColumn("place", F.row_number().over(largest)).where(F.col("place") <= most)


def _counted(key: str, plan: Plan) -> Column:
    """A metric's value; null where too little of the list is judged for it to count. An empty list always counts."""
    judged = dict(zip(plan.metrics, plan.judged, strict=True))[key]
    if judged is None:
        return F.col(key)
    return F.when((F.col(RETRIEVED) == 0) | (F.col(judged) >= plan.min_judged), F.col(key)).alias(key)


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
    both = lists.join(F.broadcast(changed.select(*_CHANGE)), "query_id").select(
        *_CHANGE,
        "doc_id",
        "grade",
        F.col("ranks")[F.col("baseline")].alias("before"),
        F.col("ranks")[F.col("candidate")].alias("after"),
    )
    moved = _moved(both, {spec.key: spec.k or DEPTH for spec in specs})
    tops = both.groupBy(*_CHANGE).agg(_top("before").alias("baseline_top"), _top("after").alias("candidate_top"))
    return changed.join(moved, _CHANGE, "left").join(tops, _CHANGE, "left").select(*QUERY_CHANGES.names)


def _top(rank: str) -> Column:
    """A list's first documents with their grades, as JSON; grades that nobody gave are left out of it."""
    entry = F.struct(F.col(rank).alias("rank"), "doc_id", F.col("grade").cast("double").alias("grade"))
    entries = F.sort_array(F.collect_list(F.when(F.col(rank) <= DEPTH, entry)))
    return F.when(F.size(entries) > 0, F.to_json(F.transform(entries, lambda each: each.dropFields("rank"))))


_CHANGE = ["baseline", "candidate", "metric", "query_id"]


def _by_system(rows: DataFrame, keys: Sequence[str], value: Column, name: str) -> DataFrame:
    """One row per key, with a map called `name` from each system to its value."""
    entries = F.collect_list(F.struct("system", value.alias("value")))
    return rows.groupBy(*keys).agg(F.map_from_entries(entries).alias(name))


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
