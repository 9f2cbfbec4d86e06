"""The queries with the largest gains and losses between two systems, and the documents that moved."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.comparison.counting import counted_value
from pipelines.scoring.place import place_documents
from schemas.outputs import QUERY_CHANGES
from udfs.conventions import Conventions
from udfs.registry import MetricSpec
from udfs.statistics.counting import TIE
from udfs.statistics.plan import Plan

DOCUMENTS = 5  # moved documents listed per query
DEPTH = 10  # ranks compared where a metric has no cut-off


def find_movers(query_metrics: DataFrame, *, plan: Plan, keys: Sequence[str], most: int) -> DataFrame:
    """Per pair and metric, the `most` largest gains and losses among the queries that count; ties by query_id.

    The rows of a query are grouped once, for all pairs.
    """
    rows = query_metrics.where(F.col("system").isin(*{system for pair in plan.pairs for system in pair}))
    by_query = _by_system(rows, ["query_id"], F.struct("weight", *[counted_value(key, plan) for key in keys]), "of")
    of, names = F.col("of"), dict(zip(plan.metrics, plan.names or plan.metrics, strict=True))
    compared = [
        F.struct(
            F.lit(baseline).alias("baseline"),
            F.lit(candidate).alias("candidate"),
            F.lit(key).alias("metric"),
            F.lit(names[key]).alias("metric_name"),
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


def add_moved_documents(
    changed: DataFrame,
    rankings: DataFrame,
    labels: DataFrame,
    *,
    specs: Sequence[MetricSpec],
    conventions: Conventions,
    queries: DataFrame | None = None,
    documents: DataFrame | None = None,
) -> DataFrame:
    """Add the documents that moved, at the ranks they were scored at, and the texts that the inputs have of them."""
    moving = F.broadcast(changed.select("query_id").distinct())
    placed = place_documents(rankings.join(moving, "query_id", "left_semi"), conventions)
    graded = labels.join(moving, "query_id", "left_semi").repartition("query_id")
    grades = graded.groupBy("query_id", "doc_id").agg(F.max("grade").alias("grade"))
    lists = _by_system(placed, ["query_id", "doc_id"], F.col("rank"), "ranks").join(
        grades, ["query_id", "doc_id"], "left"
    )
    lists = _add_text(lists, documents, "doc_id", "title")
    both = lists.join(F.broadcast(changed.select(*_CHANGE)), "query_id").select(
        *_CHANGE,
        "doc_id",
        "title",
        "grade",
        F.col("ranks")[F.col("baseline")].alias("before"),
        F.col("ranks")[F.col("candidate")].alias("after"),
    )
    moved = _describe_moves(both, {spec.key: spec.k or DEPTH for spec in specs})
    tops = both.groupBy(*_CHANGE).agg(_top("before").alias("baseline_top"), _top("after").alias("candidate_top"))
    described = changed.join(moved, _CHANGE, "left").join(tops, _CHANGE, "left")
    return _add_text(described, queries, "query_id", "query").select(*QUERY_CHANGES.names)


def _add_text(rows: DataFrame, texts: DataFrame | None, key: str, column: str) -> DataFrame:
    """Add the text of each key, null where there is none; `rows` are few and `texts` may be many."""
    if texts is None or column not in texts.columns:
        return rows.withColumn(column, F.lit(None).cast("string"))
    keys = F.broadcast(rows.select(key).distinct())
    of_keys = texts.join(keys, key, "left_semi").groupBy(key).agg(F.min(column).alias(column))
    return rows.join(of_keys, key, "left")


def _top(rank: str) -> Column:
    """The first documents of a list as JSON, with their titles and grades where they have one."""
    entry = F.struct(F.col(rank).alias("rank"), "doc_id", "title", F.col("grade").cast("double").alias("grade"))
    entries = F.sort_array(F.collect_list(F.when(F.col(rank) <= DEPTH, entry)))
    return F.when(F.size(entries) > 0, F.to_json(F.transform(entries, lambda each: each.dropFields("rank"))))


_CHANGE = ["baseline", "candidate", "metric", "query_id"]


def _by_system(rows: DataFrame, keys: Sequence[str], value: Column, name: str) -> DataFrame:
    """One row per key, with a map called `name` from each system to its value."""
    entries = F.collect_list(F.struct("system", value.alias("value")))
    return rows.groupBy(*keys).agg(F.map_from_entries(entries).alias(name))


def _describe_moves(both: DataFrame, depths: dict[str, int]) -> DataFrame:
    """Per changed query, its moved documents as text: doc_id (grade) 7 → 1; – for a rank outside the list."""
    limit = F.lit(0)
    for metric, depth in depths.items():
        limit = F.when(F.col("metric") == metric, F.lit(depth)).otherwise(limit)
    before, after = F.col("before"), F.col("after")
    best = F.least(before, after)  # least skips nulls
    moved = both.where((best <= limit) & ~before.eqNullSafe(after))
    best_first = Window.partitionBy(*_CHANGE).orderBy(F.desc_nulls_last("grade"), best, "doc_id")
    listed = moved.withColumn("at", F.row_number().over(best_first)).where(F.col("at") <= DOCUMENTS)
    line = F.format_string(
        "%s (%s) %s → %s", "doc_id", _to_text(F.col("grade"), "?"), _to_text(before), _to_text(after)
    )
    lines = F.sort_array(F.collect_list(F.struct("at", line.alias("line"))))
    return listed.groupBy(*_CHANGE).agg(F.concat_ws("; ", lines.getField("line")).alias("moved"))


def _to_text(number: Column, missing: str = "–") -> Column:
    return F.when(number.isNull(), F.lit(missing)).otherwise(F.format_string("%.0f", number.cast("double")))
