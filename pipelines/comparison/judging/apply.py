"""Correct the estimates of a run by its judged queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.comparison.judging.difference import FEWEST, JudgedSample, correct_answer, read_answer
from pipelines.comparison.judging.rescore import JudgedTables, judged_spec
from udfs.ragged import Bools, Floats
from udfs.registry import MetricSpec
from udfs.statistics.plan import BETWEEN, EVERYTHING, Plan, Row, name_value

# Of the queries with any grade, those whose top k is graded in whole. Where they are fewer, what is missing is not
# missing at random, as with the sheet of another candidate.
MIN_COMPLETE = 0.8
KEY = ("baseline", "candidate", "segment", "value", "metric")
CORRECTED = (
    *("delta_corrected", "corrected_low", "corrected_high", "corrected_stderr", "corrected_degrees"),
    *("corrected_relative", "corrected_relative_stderr", "p_value"),
)


@dataclass(frozen=True)
class SheetCount:
    """The drawn queries of a sheet: how many have any grade, and how many count for a pair of systems and a metric."""

    baseline: str
    candidate: str
    metric: str
    queries: int
    graded: int
    complete: int

    @property
    def usable(self) -> bool:
        """Whether enough of the sheet is graded to correct this difference."""
        return self.complete >= max(FEWEST, MIN_COMPLETE * self.graded)


@dataclass(frozen=True)
class PairedQueries:
    """The drawn queries as one pair and metric see them; `usable` where both top k are graded and both values exist."""

    chance: Floats
    model: Floats
    judged: Floats
    baseline_model: Floats
    baseline_judged: Floats
    complete: Bools

    def select(self, rows: Bools) -> JudgedSample:
        return JudgedSample(self.chance[rows], self.model[rows], self.judged[rows])

    def select_baseline(self, rows: Bools) -> JudgedSample:
        return JudgedSample(self.chance[rows], self.baseline_model[rows], self.baseline_judged[rows])


def correct_estimates(
    estimates: DataFrame, tables: JudgedTables, specs: Sequence[MetricSpec], plan: Plan
) -> tuple[DataFrame, tuple[SheetCount, ...]]:
    """The estimates with the columns of the correction wherever enough of the sheet is graded, and what was."""
    rows = estimates.where(F.col("baseline").isNotNull() & F.col("label_share").isNotNull()).collect()
    by_key = {tuple(row[name] for name in KEY): row.asDict() for row in rows}
    records: list[tuple[object, ...]] = []
    counts = []
    for baseline, candidate in plan.pairs:
        for spec in specs:
            paired = match_judged_queries(tables, baseline, candidate, spec)
            count = SheetCount(
                baseline=baseline,
                candidate=candidate,
                metric=spec.key,
                queries=len(tables.sheet),
                graded=int(tables.sheet["graded"].sum()),
                complete=int(paired.complete.sum()),
            )
            counts.append(count)
            if count.usable:
                records += correct_segments(paired, tables, (baseline, candidate, spec.key), by_key, plan)
    return _join_corrections(estimates, records), tuple(counts)


def match_judged_queries(tables: JudgedTables, baseline: str, candidate: str, spec: MetricSpec) -> PairedQueries:
    """The values of both systems in the order of the sheet."""
    queries = tables.sheet["query_id"]

    def read(table: pd.DataFrame, system: str, column: str) -> Floats:
        of_system = table[table["system"] == system].set_index("query_id")[column]
        return of_system.reindex(queries).to_numpy(dtype=np.float64)

    b_model, c_model = (read(tables.by_model, system, spec.key) for system in (baseline, candidate))
    b_judged, c_judged = (read(tables.by_judges, system, spec.key) for system in (baseline, candidate))
    model, judged = c_model - b_model, c_judged - b_judged
    complete = ~np.isnan(model) & ~np.isnan(judged)
    for system in (baseline, candidate):
        empty = read(tables.by_judges, system, "retrieved") == 0
        complete &= empty | (read(tables.by_judges, system, judged_spec(spec).key) >= 1.0)
    return PairedQueries(
        chance=tables.sheet["chance"].to_numpy(dtype=np.float64),
        model=model,
        judged=judged,
        baseline_model=b_model,
        baseline_judged=b_judged,
        complete=complete,
    )


def correct_segments(
    paired: PairedQueries,
    tables: JudgedTables,
    subject: tuple[str, str, str],
    estimates: Mapping[tuple[str, ...], Row],
    plan: Plan,
) -> Iterator[tuple[object, ...]]:
    """The corrections of one pair and metric, in every value of every segment with enough judged queries."""
    baseline, candidate, metric = subject
    for segment, values in _name_cells(tables, baseline, plan):
        for value in np.unique(values[paired.complete]):
            rows = paired.complete & (values == value)
            key = (baseline, candidate, segment, str(value), metric)
            if rows.sum() >= FEWEST and key in estimates:
                yield (*key, int(rows.sum()), *_correct_row(estimates[key], paired, rows, plan.confidence))


def _correct_row(row: Row, paired: PairedQueries, rows: Bools, confidence: float) -> tuple[float, ...]:
    """The values of `CORRECTED` for one row of the estimates."""
    corrected = correct_answer(read_answer(row), paired.select(rows))
    low, high = corrected.interval(confidence)
    sample = paired.select_baseline(rows)
    error = np.average(sample.judged - sample.model, weights=1.0 / sample.chance)
    base = row["baseline_mean"] + error
    scale = 1.0 / base if base > 0 else np.nan
    numbers = (corrected.value, low, high, corrected.stderr, corrected.degrees)
    relative = (corrected.value * scale, corrected.stderr * scale)
    return tuple(float(number) for number in (*numbers, *relative, corrected.p_value()))


def _name_cells(tables: JudgedTables, baseline: str, plan: Plan) -> Iterator[tuple[str, npt.NDArray[np.object_]]]:
    """Every segment with the value of each drawn query in it, in the order of the sheet."""
    queries = tables.sheet["query_id"]
    yield EVERYTHING, np.full(len(queries), EVERYTHING, dtype=object)
    of_baseline = tables.by_model[tables.by_model["system"] == baseline].set_index("query_id").reindex(queries)
    for columns in plan.segments:
        parts = [[name_value(None if pd.isna(each) else each) for each in of_baseline[name]] for name in columns]
        yield BETWEEN.join(columns), np.array([BETWEEN.join(cell) for cell in zip(*parts, strict=True)], dtype=object)


def _join_corrections(estimates: DataFrame, records: Sequence[tuple[object, ...]]) -> DataFrame:
    if not records:
        return estimates
    schema = ", ".join(
        [*[f"{name} string" for name in KEY], "_judged_queries bigint", *[f"_{name} double" for name in CORRECTED]]
    )
    corrections = estimates.sparkSession.createDataFrame(list(records), schema)
    joined = estimates.join(F.broadcast(corrections), list(KEY), "left")
    replaced = {name: F.coalesce(f"_{name}", name) for name in (*CORRECTED, "judged_queries")}
    return joined.withColumns(replaced).select(*estimates.columns)
