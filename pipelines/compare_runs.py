"""Two published runs against each other: paired on the queries that both have, and split where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.compare import compare
from pipelines.config_statistics import Bands, Statistics
from pipelines.estimate import estimate
from pipelines.runs import Manifest, read_table
from pipelines.segments import with_bands
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
    """System by system as named, first run against second, on the metrics and segments that both have."""
    specs, segments = common(runs)
    how = Statistics.model_validate(runs[1].config.get("statistics", {}))
    tables = [_rows(spark, warehouse, run, system, segments) for run, system in zip(runs, systems, strict=True)]
    keys = tuple(spec.key for spec in specs)
    plan = Plan(
        systems=(BEFORE, AFTER),
        metrics=keys,
        pooled=tuple(spec.key for spec in specs if spec.metric.pool is not None),
        segments=segments,
        judged=(None,) * len(keys),
        confidence=how.confidence,
    )
    named = [table.withColumn("system", F.lit(name)) for table, name in zip(tables, plan.systems, strict=True)]
    # Each run by itself: its own queries, weights and segments.
    alone = [estimate(table, plan=plan).where("baseline IS NULL") for table in named]
    averages = [[row.asDict() for row in table.collect()] for table in alone]
    columns = ["query_id", "system", *plan.numbers]
    theirs = tables[1].select("query_id", "weight", *plan.columns)
    paired = reduce(DataFrame.unionByName, [table.select(*columns) for table in named]).join(theirs, "query_id")
    both = estimate(paired, plan=replace(plan, pairs=((BEFORE, AFTER),)), scattered=True)
    compared = compare(both, family=keys, correction="holm", confidence=how.confidence)
    rows = [row.asDict() for row in compared.where("queries > 0").collect()]
    return RunComparison(rows, splits(averages[0], averages[1], keys, plan.segments))


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
