"""Segments by columns of the log: a query counts in each value by the pages that it has there.

Labels stay per query and document. Where lists differ by the column, each value's list is scored by itself; elsewhere
a query has the same metrics in every value, and only its traffic differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.comparison.estimate import estimate_metrics
from pipelines.comparison.segments import limit_segment_values
from pipelines.comparison.settings import PAGE, strip_page
from pipelines.config.model import Config
from pipelines.scoring.page_traffic import KEY, PAGES, PageLists, join_by, write_key
from pipelines.scoring.score import Scorer
from udfs.statistics.plan import EVERYTHING, Plan
from udfs.tabulate import DRAWS


@dataclass(frozen=True)
class SegmentedLists:
    """The query metrics with the columns of segments, and what they were scored from."""

    query_metrics: DataFrame
    labels: DataFrame
    scorer: Scorer
    lists: PageLists


def estimate_page_segments(
    scored: SegmentedLists, plan: Plan, config: Config, checkpoint: Callable[[DataFrame], DataFrame]
) -> DataFrame | None:
    """The estimates by columns of the log, as `estimate_metrics` has them; None where no segment names one."""
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for segment in config.page_segments:
        columns = strip_page(name for name in segment if name.startswith(PAGE))
        groups.setdefault(tuple(sorted(columns)), []).append(strip_page(segment))
    parts = []
    for columns, segments in groups.items():
        page_plan = replace(plan, segments=tuple(segments), by_traffic=True, clustered=True)
        rows = limit_segment_values(
            checkpoint(_weigh_by_pages(scored, columns, page_plan, config.statistics.cluster)),
            segments=segments,
            limit=config.statistics.max_values,
            many=config.statistics.many_values,
        )
        estimates = estimate_metrics(rows, plan=page_plan, cluster=config.statistics.cluster, scattered=True)
        parts.append(estimates.where(F.col("segment") != EVERYTHING))
    return reduce(DataFrame.unionByName, parts) if parts else None


def _weigh_by_pages(scored: SegmentedLists, columns: Sequence[str], plan: Plan, cluster: str | None) -> DataFrame:
    """One row per system, query and value, with the pages of the query there as its weight."""
    by = [column for column in columns if column in scored.lists.columns]
    rows = _score_lists_by(scored, by) if by else scored.query_metrics
    of_query = [name for name in (*plan.columns, cluster) if name is not None and name not in columns]
    if by and of_query:
        own = scored.query_metrics.select("system", "query_id", *dict.fromkeys(of_query))
        rows = rows.drop(*of_query).join(own, ["system", "query_id"], "left")
    pages = scored.lists.count_pages(columns)
    traffic = join_by(rows, pages, ["query_id", *by])
    draws = [DRAWS] if plan.draw_sets else []
    return traffic.select(
        "system",
        write_key("query_id", columns).alias("query_id"),
        F.col(PAGES).cast("double").alias("weight"),
        *dict.fromkeys([*plan.columns, *([cluster] if cluster else [])]),
        *plan.numbers,
        *draws,
    )


def _score_lists_by(scored: SegmentedLists, by: Sequence[str]) -> DataFrame:
    """The metrics of the lists of every value, each scored as a query of its own by the labels of its query."""
    keys = scored.lists.count_pages(by).select("query_id", *by, write_key("query_id", by).alias(KEY))
    tables = scored.scorer.tables

    def expand(table: DataFrame) -> DataFrame:
        return table.join(keys.select("query_id", KEY), "query_id").drop("query_id").withColumnRenamed(KEY, "query_id")

    lists = join_by(scored.lists.select_lists(by), keys, ["query_id", *by]).drop("query_id", *by)
    by_value = replace(
        scored.scorer,
        rankings=lists.withColumnRenamed(KEY, "query_id"),
        tables=replace(
            tables,
            queries=keys.select(F.col(KEY).alias("query_id"), F.lit(1.0).alias("weight")),
            decisions=None if tables.decisions is None else expand(tables.decisions),
        ),
        segments=(),
    )
    metrics = by_value(expand(scored.labels)).withColumnRenamed("query_id", KEY)
    return metrics.join(keys, KEY).drop(KEY)
