"""Two published runs against each other: paired on the queries that both have, and split where they differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.compare import compare
from pipelines.config import JUDGED, MIN_JUDGED
from pipelines.config_statistics import Bands, Compare, Statistics
from pipelines.estimate import estimate
from pipelines.runs import Manifest, read_table
from pipelines.segments import bounded, with_bands
from schemas.errors import InputError
from udfs.registry import Spec, parse
from udfs.statistics.mix import Cell, Split, split
from udfs.statistics.plan import BETWEEN, Plan

BEFORE, AFTER = "before", "after"
FORMS = {"macro": "queries", "weighted": "traffic", "micro": "pool"}  # an average, and what its cells count by


@dataclass(frozen=True)
class Part:
    """How the difference of one average between the runs splits by one segment."""

    metric: str
    form: str
    segment: str
    split: Split


@dataclass(frozen=True)
class RunComparison:
    """Rows as in `comparisons`, on the queries of both runs, and the splits, on all queries of each."""

    comparisons: Sequence[Mapping[str, Any]]
    parts: Sequence[Part]


def compare_runs(
    spark: SparkSession, warehouse: str, runs: tuple[Manifest, Manifest], systems: tuple[str, str]
) -> RunComparison:
    """System by system as named, first run against second, on the metrics and segments that both have.

    A query counts where enough of its list is judged for both runs; the other settings are those of the second.
    """
    specs, segments = common(runs)
    how = Statistics.model_validate(runs[1].config.get("statistics", {}))
    tables = [_rows(spark, warehouse, run, system, segments) for run, system in zip(runs, systems, strict=True)]
    shared = set(tables[0].columns) & set(tables[1].columns)
    cluster = how.cluster if how.cluster in shared else None
    least = max(map(_least_judged, runs))
    keys = tuple(spec.key for spec in specs)
    plan = Plan(
        systems=(BEFORE, AFTER),
        metrics=keys,
        pooled=tuple(spec.key for spec in specs if spec.metric.pool is not None),
        segments=segments,
        judged=tuple(_judged(spec, shared) if least else None for spec in specs),
        min_judged=least,
        confidence=how.confidence,
    )
    of_query = ["weight", *plan.columns, *([cluster] if cluster and cluster not in plan.columns else [])]
    named = [
        table.select(F.lit(name).alias("system"), "query_id", *of_query, *plan.numbers)
        for table, name in zip(tables, plan.systems, strict=True)
    ]
    cut = bounded(named[0].unionByName(named[1]), segments=segments, most=how.max_values, many=how.many_values)
    before, after = (cut.where(F.col("system") == name) for name in plan.systems)
    # Each run by itself: its own queries, weights and segments.
    averages = [
        [row.asDict() for row in estimate(table, plan=plan).where("baseline IS NULL").collect()]
        for table in (before, after)
    ]
    values = cut.select("system", "query_id", *plan.numbers)
    paired = values.join(after.select("query_id", *of_query), "query_id")
    both = replace(plan, pairs=((BEFORE, AFTER),), clustered=cluster is not None)
    compared = compare(
        estimate(paired, plan=both, cluster=cluster, scattered=True),
        family=keys,
        correction=Compare.model_validate(runs[1].config.get("compare", {})).correction,
        confidence=how.confidence,
    )
    rows = [row.asDict() for row in compared.where("queries > 0").collect()]
    return RunComparison(rows, splits(averages[0], averages[1], keys, plan.segments))


def _least_judged(run: Manifest) -> float:
    """How much of a top k must be judged for a query to count, as the run itself had it."""
    asked = Compare.model_validate(run.config.get("compare", {})).min_judged
    if asked == "auto":
        return MIN_JUDGED if run.conventions.get("unjudged") == "cut_then_condense" else 0.0
    return asked or 0.0


def _judged(spec: Spec, columns: Collection[str]) -> str | None:
    """The column that says how much of the top k of this metric is judged, where the runs have it."""
    if spec.metric.name == JUDGED or spec.k is None:
        return None
    key = parse(f"{JUDGED}@{spec.k}").key
    return key if key in columns else None


def common(runs: tuple[Manifest, Manifest]) -> tuple[list[Spec], tuple[tuple[str, ...], ...]]:
    """The metrics and segments that both runs have."""
    first, second = (run.config for run in runs)
    metrics = [name for name in second["metrics"] if name in first["metrics"]]
    if not metrics:
        raise InputError("the runs have no metric in common", hint="evaluate one of them again")
    before = [tuple(columns) for columns in first.get("segments", ())]
    segments = [tuple(columns) for columns in second.get("segments", ()) if tuple(columns) in before]
    return [parse(name) for name in metrics], tuple(segments)


def splits(
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    segments: Sequence[Sequence[str]],
) -> list[Part]:
    """Every average of every metric, split by every segment."""

    def cells(rows: Sequence[Mapping[str, Any]], metric: str, form: str, segment: str) -> dict[str, Cell]:
        mine = (r for r in rows if r["metric"] == metric and r["segment"] == segment)
        return {r["value"]: Cell(r[FORMS[form]], r[form]) for r in mine if r[form] is not None}

    parts = []
    for metric in metrics:
        for form in FORMS:
            for segment in map(BETWEEN.join, segments):
                found = split(cells(before, metric, form, segment), cells(after, metric, form, segment))
                if found is not None:
                    parts.append(Part(metric, form, segment, found))
    return parts


def _rows(
    spark: SparkSession, warehouse: str, run: Manifest, system: str, segments: Sequence[Sequence[str]]
) -> DataFrame:
    table = read_table(spark, warehouse, "query_metrics", date=run.dt, run=run.run).where(F.col("system") == system)
    bands = Bands.model_validate(run.config.get("bands", {}))
    return with_bands(table, bands=bands, wanted=[column for columns in segments for column in columns])
