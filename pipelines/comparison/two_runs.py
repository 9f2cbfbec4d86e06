"""Two published runs compared: paired on the queries that both have, and split by segment on all queries of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.comparison.compare import PValueRules, compare_systems
from pipelines.comparison.counting import read_min_judged
from pipelines.comparison.estimate import estimate_metrics
from pipelines.comparison.segments import add_bands, limit_segment_values
from pipelines.comparison.settings import PAGE, BandSettings, CompareSettings, StatisticsSettings
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.tables import read_table
from schemas.errors import InputError
from udfs.registry import MetricSpec, parse_metric
from udfs.statistics.counting import judged_column
from udfs.statistics.mix import MixSplit, SegmentCell, split_difference
from udfs.statistics.plan import BETWEEN, Plan, Row

BEFORE, AFTER = "before", "after"
FORMS = {"macro": "queries", "weighted": "traffic", "micro": "pool"}  # an average, and the size of its cells


@dataclass(frozen=True)
class MixPart:
    """How the difference of one average between the runs splits by one segment."""

    metric: str
    form: str
    segment: str
    split: MixSplit


@dataclass(frozen=True)
class RunComparison:
    """Rows as in `comparisons`, on the queries of both runs; the splits, on all queries of each; and the rule.

    A query counts for a metric where its column in `judged`, if it has one, is at least `min_judged` in both runs.
    """

    comparisons: Sequence[Row]  # over all queries, and in every segment that both runs have
    parts: Sequence[MixPart]
    min_judged: float = 0.0
    judged: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PairPlan:
    """The estimates of two runs: what to sum, what is one observation, and how p-values are adjusted."""

    plan: Plan  # of the averages of each run; that of their difference has the pair
    cluster: str | None
    settings: StatisticsSettings
    rules: PValueRules

    @property
    def pair(self) -> Plan:
        """The plan of the difference."""
        return replace(self.plan, pairs=((BEFORE, AFTER),), clustered=self.cluster is not None)

    @property
    def of_query(self) -> tuple[str, ...]:
        """The columns of a query, which both runs have: its weight, segments and cluster."""
        return tuple(dict.fromkeys(["weight", *self.plan.columns, *([self.cluster] if self.cluster else [])]))

    def build_comparison(self, compared: Sequence[Row], averages: Sequence[Sequence[Row]]) -> RunComparison:
        """The comparison of the runs: the rows of the pair, and the averages of each run."""
        return RunComparison(
            comparisons=[row for row in compared if row["queries"] > 0],
            parts=split_by_segment(averages[0], averages[1], self.plan.metrics, self.plan.segments),
            min_judged=self.plan.min_judged,
            judged={key: column for key, column in zip(self.plan.metrics, self.plan.judged, strict=True) if column},
        )


def plan_pair(runs: tuple[Manifest, Manifest], shared: Collection[str]) -> PairPlan:
    """Plan the comparison of two runs whose `query_metrics`, with bands, have these columns in common.

    The stricter `min_judged` of the two runs holds; the other settings are those of the second.
    """
    specs, segments = find_common_metrics(runs)
    settings = StatisticsSettings.model_validate(runs[1].config.get("statistics", {}))
    min_judged = max(read_min_judged(run) or 0.0 for run in runs)
    plan = Plan(
        systems=(BEFORE, AFTER),
        metrics=tuple(spec.key for spec in specs),
        names=tuple(spec.name for spec in specs),
        pooled=tuple(spec.key for spec in specs if spec.metric.pool is not None),
        segments=segments,
        judged=tuple(judged_column(spec, shared) if min_judged else None for spec in specs),
        min_judged=min_judged,
        confidence=settings.confidence,
    )
    rules = PValueRules(
        family=frozenset(plan.metrics),
        correction=CompareSettings.model_validate(runs[1].config.get("compare", {})).correction,
        alpha=1 - settings.confidence,
    )
    return PairPlan(plan, settings.cluster if settings.cluster in shared else None, settings, rules)


def compare_runs(
    spark: SparkSession,
    warehouse: str,
    runs: tuple[Manifest, Manifest],
    systems: tuple[str, str],
    *,
    before_warehouse: str | None = None,
) -> RunComparison:
    """One system of each run, first run against second, on the metrics and segments that both have.

    `before_warehouse` is that of the first run, where it differs.
    """
    _, segments = find_common_metrics(runs)
    places = (before_warehouse or warehouse, warehouse)
    tables = [
        _read_rows(spark, place, run, system, segments)
        for place, run, system in zip(places, runs, systems, strict=True)
    ]
    pair = plan_pair(runs, set(tables[0].columns) & set(tables[1].columns))
    plan, settings = pair.plan, pair.settings
    before, after = (
        table.select(F.lit(name).alias("system"), "query_id", *pair.of_query, *plan.numbers)
        for table, name in zip(tables, plan.systems, strict=True)
    )
    rows = limit_segment_values(
        before.unionByName(after), segments=segments, limit=settings.max_values, many=settings.many_values
    )
    compared = compare_systems(_estimate_pair(rows, pair), pair.rules)
    averages = [_estimate_averages(rows.where(F.col("system") == name), plan) for name in plan.systems]
    return pair.build_comparison([row.asDict() for row in compared.collect()], averages)


def find_common_metrics(runs: tuple[Manifest, Manifest]) -> tuple[list[MetricSpec], tuple[tuple[str, ...], ...]]:
    """The metrics with a value per query, and the segments, that both runs have."""
    first, second = (run.config for run in runs)
    metrics = [parse_metric(name) for name in second["metrics"] if name in first["metrics"]]
    specs = [spec for spec in metrics if spec.metric.scope != "system"]
    if not specs:
        raise InputError("the runs have no metric in common", hint="evaluate one again with the other's metrics")
    before, after = ([tuple(columns) for columns in run.get("segments", ())] for run in (first, second))
    # `query_metrics` has no columns of pages.
    segments = [each for each in after if each in before and not any(name.startswith(PAGE) for name in each)]
    return specs, tuple(segments)


def split_by_segment(
    before: Sequence[Row], after: Sequence[Row], metrics: Sequence[str], segments: Sequence[Sequence[str]]
) -> list[MixPart]:
    """Every average of every metric, split by every segment."""

    def select_cells(rows: Sequence[Row], metric: str, form: str, segment: str) -> dict[str, SegmentCell]:
        selected = (r for r in rows if r["metric"] == metric and r["segment"] == segment)
        return {r["value"]: SegmentCell(r[FORMS[form]], r[form]) for r in selected if r[form] is not None}

    parts = []
    for metric in metrics:
        for form in FORMS:
            for segment in map(BETWEEN.join, segments):
                cells = [select_cells(rows, metric, form, segment) for rows in (before, after)]
                split = split_difference(cells[0], cells[1])
                if split is not None:
                    parts.append(MixPart(metric, form, segment, split))
    return parts


def _estimate_pair(rows: DataFrame, pair: PairPlan) -> DataFrame:
    """The estimates on the queries of both runs, with the weights and segments of the second."""
    after = rows.where(F.col("system") == AFTER).select("query_id", *pair.of_query)
    paired = rows.select("system", "query_id", *pair.plan.numbers).join(after, "query_id")
    return estimate_metrics(paired, plan=pair.pair, cluster=pair.cluster, scattered=True)


def _estimate_averages(rows: DataFrame, plan: Plan) -> list[Row]:
    """The averages of one run: its own queries, weights and segments."""
    return [row.asDict() for row in estimate_metrics(rows, plan=plan).where("baseline IS NULL").collect()]


def _read_rows(
    spark: SparkSession, warehouse: str, run: Manifest, system: str, segments: Sequence[Sequence[str]]
) -> DataFrame:
    table = read_table(spark, warehouse, "query_metrics", date=run.dt, run=run.run).where(F.col("system") == system)
    bands = BandSettings.model_validate(run.config.get("bands", {}))
    return add_bands(table, bands=bands, columns=[column for names in segments for column in names])
