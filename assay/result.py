"""The results of `assay.evaluate` and `assay.label`: tables of the caller's kind, verdict, report and publishing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from assay.arguments import require_path
from assay.computed import ComputedRun, PublishedRun
from pipelines.comparison.headline import select_headline_metrics
from pipelines.comparison.verdicts import find_worst_outcome
from pipelines.report.markup import h, text
from pipelines.report.render import render_report
from pipelines.report.tables import format_p
from pipelines.warehouse.storage import Storage
from schemas.errors import InputError, PublishError, did_you_mean
from schemas.printable import escape_line, format_count
from udfs.statistics.plan import EVERYTHING
from udfs.tables import convert_kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipelines.config.model import Config

_GATE = {"pass": "The gate passes", "fail": "The gate fails", "undecidable": "The gate cannot decide"}
_SHOWN_ROWS = 20  # of a table in a notebook


@dataclass(frozen=True, eq=False)
class RunResult:
    """The tables of a run as DataFrames of the caller's kind."""

    run: ComputedRun
    kind: str  # pandas, polars, pyarrow or pyspark
    spark: SparkSession | None = None  # the session of the results, where they are its DataFrames

    @property
    def config(self) -> Config:
        return self.run.config

    def table(self, name: str) -> Any:
        """A table of the run by its name in docs/tables.md."""
        if name not in self.run.names:
            raise InputError(f"the run has no table {name!r}", hint=did_you_mean(name, self.run.names))
        if self.spark is not None and isinstance(self.run, PublishedRun):
            return self.run.open_frame(self.spark, name)
        return convert_kind(self.run.read(name), self.kind)

    @property
    def rejected(self) -> dict[str, dict[str, int]]:
        """Per table, how many rows could not be used, by reason."""
        return {name: dict(count.rejected) for name, count in self.run.counts.items() if count.rejected}

    def publish(self, warehouse: str | Path) -> str:
        """Publish the result as a run of a warehouse, and return the id of the run.

        A run of the same date, settings, data and code that is committed already is returned instead.
        """
        require_path(warehouse, "warehouse")
        return self.run.publish(Storage(str(warehouse))).run

    def _convert(self, table: pa.Table) -> Any:
        """A small table in the caller's kind."""
        return self.spark.createDataFrame(table) if self.spark is not None else convert_kind(table, self.kind)


class EvaluationResult(RunResult):
    """The tables of an evaluation, and what follows from them."""

    def __repr__(self) -> str:
        systems = ", ".join(self.run.systems)
        return escape_line(f"<EvaluationResult of {systems}: {self.verdict}>")

    @property
    def summary(self) -> Any:
        """One row per system: the mean of every metric over all queries, and the number of queries."""
        return self._convert(self._build_summary())

    @property
    def query_metrics(self) -> Any:
        """One row per system and query; see `query_metrics` in docs/tables.md."""
        return self.table("query_metrics")

    @property
    def segment_metrics(self) -> Any:
        """One row per system, segment, value and metric, with confidence intervals."""
        return self.table("segment_metrics")

    @property
    def comparisons(self) -> Any:
        """One row per pair of systems, segment, value and metric; None without a baseline."""
        return self.table("comparisons") if "comparisons" in self.run.names else None

    @property
    def gate(self) -> list[dict[str, Any]]:
        """The gate's verdict on each condition, with its reason."""
        return [verdict.model_dump() for verdict in self.run.verdicts]

    @property
    def readings(self) -> list[str]:
        """What the numbers mean together, in sentences."""
        return [escape_line(f"{each.candidate} against {each.baseline}: {each.text}") for each in self.run.readings]

    @cached_property
    def verdict(self) -> str:
        """The answer in one sentence: the gate's, or each comparison by the first headline metric."""
        return escape_line(self._describe_outcome())  # names of systems come from data

    def _describe_outcome(self) -> str:
        rejected = sum(count.read - count.kept for count in self.run.counts.values())
        note = f" {format_count(rejected, 'row')} could not be used." if rejected else ""
        worst = find_worst_outcome(verdict.verdict for verdict in self.run.verdicts)
        if worst in _GATE:
            first = next(verdict for verdict in self.run.verdicts if verdict.verdict == worst)
            return f"{_GATE[worst]}: {first.condition} for {first.candidate}: {first.reason}.{note}"
        if "comparisons" not in self.run.names:
            systems = format_count(len(self.run.systems), "system")
            return f"{systems} evaluated; without a baseline nothing is compared.{note}"
        gated = {condition.metric for condition in self.config.gate}
        spec = select_headline_metrics(self.config.specs, gated)[0]
        rows = self.run.read("comparisons").filter(
            (pc.field("segment") == EVERYTHING) & (pc.field("metric") == spec.key)
        )
        return " ".join(describe_difference(row, spec.name) for row in rows.to_pylist()) + note

    def report(self, path: str | Path) -> Path:
        """Write the HTML report to a file, and return its path."""
        require_path(path, "path")
        target = Path(path)
        content = render_report(*self.run.locate())
        try:
            target.write_text(content, encoding="utf-8")
        except OSError as error:
            raise PublishError(f"cannot write the report: {error.strerror}", where=str(target)) from None
        return target

    def _repr_html_(self) -> str:
        """The verdict and the summary, for notebooks."""
        return render_html(self.verdict, self._build_summary())

    def _build_summary(self) -> pa.Table:
        overall = self.run.read("segment_metrics").filter(pc.field("segment") == EVERYTHING).to_pylist()
        by_key = {(row["system"], row["metric"]): row for row in overall}
        names = {spec.key: spec.name for spec in self.config.specs}
        first = self.config.specs[0].key
        rows = [
            {"system": system}
            | {name: by_key[system, key]["macro"] for key, name in names.items()}
            | {count: by_key[system, first][count] for count in ("queries", "skipped")}
            for system in self.run.systems
        ]
        kinds = [("system", pa.string()), *[(name, pa.float64()) for name in names.values()]]
        return pa.Table.from_pylist(rows, pa.schema([*kinds, ("queries", pa.int64()), ("skipped", pa.int64())]))


class LabelResult(RunResult):
    """The labels of a log, and what they rest on."""

    def __repr__(self) -> str:
        return escape_line(f"<LabelResult: {'; '.join(line.strip() for line in self.diagnostics[:3])}>")

    @property
    def labels(self) -> Any:
        """One row per query and document; see `labels` in docs/tables.md."""
        return self.table("labels")

    @property
    def propensities(self) -> Any:
        """How likely each position is examined, with intervals."""
        return self.table("propensities")

    @property
    def denoise_funnel(self) -> Any:
        """What each rule of denoising dropped."""
        return self.table("denoise_funnel")

    @property
    def diagnostics(self) -> list[str]:
        """What became of the log, and what was noticed about it, in sentences."""
        from jobs.support.labelling import describe_labelling

        return describe_labelling(self.run.locate()[1].labels)

    def _repr_html_(self) -> str:
        """The diagnostics and the propensities, for notebooks."""
        return render_html("\n".join(self.diagnostics), self.run.read("propensities"))


def render_html(sentences: str, table: pa.Table) -> str:
    """Sentences, one on each line, and the first rows of a table, for notebooks."""
    rows = table.slice(0, _SHOWN_ROWS)
    heading = h("tr", [h("th", name) for name in rows.column_names])
    lines = [h("tr", [h("td", _show(value)) for value in row.values()]) for row in rows.to_pylist()]
    paragraphs = [h("p", text(sentence, 600)) for sentence in sentences.split("\n")]
    return str(h("div", paragraphs, h("table", h("thead", heading), h("tbody", lines))))


def describe_difference(row: dict[str, Any], metric: str) -> str:
    """One comparison in a sentence."""
    pair = escape_line(f"{row['candidate']} against {row['baseline']}")
    if row["delta"] is None or row["p_value"] is None:
        counts = "; a query without a relevant document counts for few metrics" if not row["queries"] else ""
        return f"{pair}: {metric} cannot be compared on {format_count(row['queries'], 'query')}{counts}."
    p = row["p_value"] if row["p_adjusted"] is None else row["p_adjusted"]
    direction = "better" if row["delta"] > 0 else "worse"
    claim = f"significantly {direction}" if row["significant"] else "no significant difference"
    interval = f"{row['delta']:+.4f} [{row['delta_low']:+.4f}, {row['delta_high']:+.4f}]"
    return f"{pair}: {claim}, {metric} {interval}, p {format_p(p)}, {format_count(row['queries'], 'query')}."


def _show(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
