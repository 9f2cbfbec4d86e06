"""`assay.compare`: two results, or two published runs, paired by query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from assay.arguments import require_session
from assay.in_memory import compare_arrow, estimate_arrow, limit_values
from assay.result import EvaluationResult, describe_difference, render_html
from pipelines.comparison.comparable import find_differences
from pipelines.comparison.settings import BANDS
from pipelines.comparison.two_runs import AFTER, BEFORE, PairPlan, RunComparison, compare_runs, plan_pair
from pipelines.warehouse.runs import Manifest, find_run
from pipelines.warehouse.storage import Storage
from schemas.errors import ConfigurationError, InputError
from schemas.outputs import COMPARISONS
from udfs.registry import parse_metric
from udfs.statistics.plan import EVERYTHING, Plan, Row
from udfs.tables import convert_kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Place = tuple[Storage, Manifest]


@dataclass(frozen=True, eq=False)
class ComparisonResult:
    """Two runs compared on the queries of both."""

    comparison: RunComparison
    runs: tuple[Manifest, Manifest]
    systems: tuple[str, str]
    kind: str

    def __repr__(self) -> str:
        return f"<ComparisonResult: {self.verdict}>"

    @property
    def comparisons(self) -> Any:
        """Rows as in `comparisons` of docs/tables.md, the second run against the first."""
        return convert_kind(pa.Table.from_pylist(list(self.comparison.comparisons)), self.kind)

    @property
    def parts(self) -> list[dict[str, Any]]:
        """How each difference splits into what changed within segments and what comes from another mix of them."""
        return [asdict(part) for part in self.comparison.parts]

    @property
    def differences(self) -> list[str]:
        """What else differs between the runs, such as conventions or judgments; empty where only systems do."""
        return find_differences(*self.runs)

    @property
    def verdict(self) -> str:
        """The first metric over all queries in a sentence, and what else differs between the runs."""
        metric = parse_metric(self.runs[1].config["metrics"][0])
        rows = [row for row in self._overall if row["metric"] == metric.key] or self._overall[:1]
        before, after = (f"{system} in run {run.run}" for system, run in zip(self.systems, self.runs, strict=True))
        named = [{**row, "baseline": before, "candidate": after} for row in rows]
        differ = f" The runs differ: {'; '.join(self.differences)}." if self.differences else ""
        return " ".join(describe_difference(row, metric.name) for row in named) + differ

    @property
    def _overall(self) -> list[Row]:
        return [row for row in self.comparison.comparisons if row["segment"] == EVERYTHING]

    def _repr_html_(self) -> str:
        """The verdict and the differences over all queries, for notebooks."""
        names = ["metric", "baseline_mean", "candidate_mean", "delta", "delta_low", "delta_high", "p_adjusted"]
        table = pa.Table.from_pylist([{name: row[name] for name in names} for row in self._overall])
        return render_html(self.verdict, table)


def compare(
    before: EvaluationResult | str,
    after: EvaluationResult | str,
    *,
    system: str | None = None,
    before_system: str | None = None,
    warehouse: str | Path | None = None,
    spark: SparkSession | None = None,
) -> ComparisonResult:
    """Compare a system of one run with one of another by query, as `assay compare` does.

    A run is a result of `assay.evaluate`, or the id or date of a run in `warehouse`. The systems are named where a run
    has several; `before_system` where it is another in the first run. Computed in this process, or in the session
    `spark`, with equal bits.
    """
    from jobs.compare import choose_system, require_paired_queries

    require_session(spark)
    first, second = (_locate(run, warehouse) for run in (before, after))
    runs = (first[1], second[1])
    systems = (
        choose_system(runs[0], before_system or system, "before_system" if before_system else "system"),
        choose_system(runs[1], system, "system"),
    )
    if spark is None:
        comparison = _compare_in_memory((first, second), systems)
    else:
        comparison = compare_runs(spark, second[0].uri, runs, systems, before_warehouse=first[0].uri)
    require_paired_queries(comparison, runs)
    kind = next((run.kind for run in (after, before) if isinstance(run, EvaluationResult)), "pandas")
    return ComparisonResult(comparison, runs, systems, "pandas" if kind == "pyspark" else kind)


def _locate(run: Any, warehouse: str | Path | None) -> Place:
    if isinstance(run, EvaluationResult):
        return run.run.locate()
    if not isinstance(run, str):
        hint = "give what assay.evaluate returns, or the id or date of a run as text"
        raise InputError(f"a {type(run).__module__}.{type(run).__name__} is no run", hint=hint)
    if warehouse is None:
        raise InputError(f"{run!r} is a run of a warehouse", hint="say which: assay.compare(..., warehouse=...)")
    storage = Storage(str(warehouse))
    return storage, find_run(storage, run, having="query_metrics")


def _compare_in_memory(places: tuple[Place, Place], systems: tuple[str, str]) -> RunComparison:
    """`compare_runs` in this process."""
    runs = (places[0][1], places[1][1])
    schemas = [storage.dataset(run.tables["query_metrics"].path).schema for storage, run in places]
    pair = plan_pair(runs, set(schemas[0].names) & set(schemas[1].names))
    bands = [column for column in pair.plan.columns if column in BANDS]
    if bands or pair.settings.many_values == "other":
        what = f"the segment {bands[0]}" if bands else "statistics.many_values: other"
        raise ConfigurationError(f"{what} cannot be compared in memory", hint="pass spark=, a session")
    columns = list(dict.fromkeys(["query_id", *pair.of_query, *pair.plan.numbers]))
    before, after = (
        _read_rows(place, system, name, columns)
        for place, system, name in zip(places, systems, (BEFORE, AFTER), strict=True)
    )
    limit_values(pa.concat_tables([before, after]), pair.plan, pair.settings.max_values)
    compared = compare_arrow(_estimate_pair(before, after, pair), pair.rules)
    for name in ("gate", "condition"):  # as in a run: nothing is judged between runs
        compared = compared.append_column(name, pa.nulls(len(compared), pa.string()))
    averages = [_estimate_averages(rows, pair.plan) for rows in (before, after)]
    return pair.build_comparison(compared.select(COMPARISONS.names).to_pylist(), averages)


def _read_rows(place: Place, system: str, name: str, columns: Sequence[str]) -> pa.Table:
    storage, manifest = place
    data = storage.dataset(manifest.tables["query_metrics"].path)
    rows = data.to_table(columns=list(columns), filter=pc.field("system") == system)
    return rows.append_column("system", pa.array([name] * len(rows), pa.string()))


def _estimate_pair(before: pa.Table, after: pa.Table, pair: PairPlan) -> pa.Table:
    """The estimates on the queries of both runs, with the weights and segments of the second."""
    of_query = after.select(["query_id", *pair.of_query])
    numbers = ["system", "query_id", *pair.plan.numbers]
    sides = [rows.select(numbers).join(of_query, "query_id", join_type="inner") for rows in (before, after)]
    return estimate_arrow(pa.concat_tables(sides), pair.pair, pair.cluster)


def _estimate_averages(rows: pa.Table, plan: Plan) -> list[Row]:
    estimates = estimate_arrow(rows, plan)
    return list(estimates.filter(pc.field("baseline").is_null()).to_pylist())
