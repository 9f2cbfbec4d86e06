"""The result of `assay.evaluate`: tables of the caller's kind, the verdict, the report, and publishing."""

from __future__ import annotations

import datetime as dt
import hashlib
import tempfile
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assay.in_memory import MemoryRun
from pipelines.comparison.headline import select_headline_metrics
from pipelines.comparison.verdicts import find_worst_outcome
from pipelines.config.model import Config
from pipelines.plan import define_evaluation
from pipelines.report.markup import h, text
from pipelines.report.render import render_report
from pipelines.report.tables import format_p
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.code_version import hash_code
from pipelines.warehouse.run_key import hash_json
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from udfs.statistics.plan import EVERYTHING
from udfs.tables import convert_kind

_GATE = {"pass": "The gate passes", "fail": "The gate fails", "undecidable": "The gate cannot decide"}
_SHOWN_ROWS = 20  # of the summary in a notebook


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """The tables of an evaluation, as DataFrames of the caller's kind, and what follows from them."""

    run: MemoryRun
    config: Config
    date: dt.date
    kind: str  # pandas, polars or pyarrow

    def __repr__(self) -> str:
        systems = ", ".join(self.run.systems)
        return f"<EvaluationResult of {systems}: {self.verdict}>"

    @property
    def summary(self) -> Any:
        """One row per system: the mean of every metric over all queries, and the number of queries."""
        return convert_kind(self._build_summary(), self.kind)

    @property
    def query_metrics(self) -> Any:
        """One row per system and query; see `query_metrics` in docs/tables.md."""
        return convert_kind(self.run.tables["query_metrics"], self.kind)

    @property
    def segment_metrics(self) -> Any:
        """One row per system, segment, value and metric, with confidence intervals."""
        return convert_kind(self.run.tables["segment_metrics"], self.kind)

    @property
    def comparisons(self) -> Any:
        """One row per pair of systems, segment, value and metric; None without a baseline."""
        table = self.run.tables.get("comparisons")
        return None if table is None else convert_kind(table, self.kind)

    @property
    def gate(self) -> list[dict[str, Any]]:
        """The gate's verdict on each condition, with its reason."""
        return [verdict.model_dump() for verdict in self.run.verdicts]

    @property
    def readings(self) -> list[str]:
        """What the numbers mean together, in sentences."""
        return [f"{each.candidate} against {each.baseline}: {each.text}" for each in self.run.readings]

    @property
    def rejected(self) -> dict[str, dict[str, int]]:
        """Per table, how many rows could not be used, by reason."""
        return {name: dict(count.rejected) for name, count in self.run.counts.items() if count.rejected}

    @cached_property
    def verdict(self) -> str:
        """The answer in one sentence: the gate's, or each comparison by the first headline metric."""
        rejected = sum(count.read - count.kept for count in self.run.counts.values())
        note = f" {rejected:,} rows could not be used." if rejected else ""
        worst = find_worst_outcome(verdict.verdict for verdict in self.run.verdicts)
        if worst in _GATE:
            first = next(verdict for verdict in self.run.verdicts if verdict.verdict == worst)
            return f"{_GATE[worst]}: {first.condition} for {first.candidate}: {first.reason}.{note}"
        if "comparisons" not in self.run.tables:
            return f"{len(self.run.systems)} systems evaluated; without a baseline nothing is compared.{note}"
        gated = {condition.metric for condition in self.config.gate}
        spec = select_headline_metrics(self.config.specs, gated)[0]
        rows = self.run.tables["comparisons"].filter(
            (pc.field("segment") == EVERYTHING) & (pc.field("metric") == spec.key)
        )
        return " ".join(_describe_difference(row, spec.name) for row in rows.to_pylist()) + note

    def report(self, path: str | Path) -> Path:
        """Write the HTML report to a file, and return its path."""
        target = Path(path)
        with tempfile.TemporaryDirectory() as folder:
            manifest = self._publish(Storage(folder))
            target.write_text(render_report(Storage(folder), manifest), encoding="utf-8")
        return target

    def publish(self, warehouse: str | Path) -> str:
        """Publish the evaluation as a run of a warehouse, and return the id of the run.

        A run of the same date, settings, data and code that is committed already is returned instead.
        """
        return self._publish(Storage(str(warehouse))).run

    def _repr_html_(self) -> str:
        """The verdict and the summary, for notebooks."""
        rows = self._build_summary().slice(0, _SHOWN_ROWS)
        heading = h("tr", [h("th", name) for name in rows.column_names])
        lines = [h("tr", [h("td", _show(value)) for value in row.values()]) for row in rows.to_pylist()]
        return str(h("div", h("p", text(self.verdict, 600)), h("table", h("thead", heading), h("tbody", lines))))

    def _build_summary(self) -> pa.Table:
        overall = self.run.tables["segment_metrics"].filter(pc.field("segment") == EVERYTHING).to_pylist()
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

    def _publish(self, storage: Storage) -> Manifest:
        work = define_evaluation(self.config)
        digests = {name: _hash_rows(rows) for name, rows in self.run.inputs.items()}
        key = work.build_key(self.date, digests)
        config = self.config.model_copy(update={"warehouse": storage.uri})
        committed = define_evaluation(config).find_committed(self.date, key)
        if committed is not None:
            return committed.manifest
        with Attempt(storage, self.date, key) as attempt:
            for name, table in self.run.tables.items():
                attempt.write_arrow(name, table)
            return attempt.commit(
                seconds={},
                config=config.dump_redacted(),
                config_hash=hash_json(self.config.dump_settings())[:12],
                code=hash_code(),
                spark="none: computed in memory",
                inputs={name: self._describe_input(name, digests[name]) for name in digests},
                systems=self.run.systems,
                conventions=self.run.conventions.model_dump(),
                gate=self.gate,
                readings=[asdict(reading) for reading in self.run.readings],
            )

    def _describe_input(self, name: str, digest: str) -> dict[str, Any]:
        rows = self.run.inputs[name]
        columns = {field.name: str(field.type) for field in rows.schema}
        place = {"places": (self.config.sources()[name].table,), "missing_days": (), "files": 0}
        return place | {"digest": digest, "columns": columns} | asdict(self.run.counts[name])


def _describe_difference(row: dict[str, Any], metric: str) -> str:
    """One comparison in a sentence."""
    pair = f"{row['candidate']} against {row['baseline']}"
    if row["delta"] is None or row["p_value"] is None:
        return f"{pair}: {metric} cannot be compared on {row['queries']:,} queries."
    p = row["p_value"] if row["p_adjusted"] is None else row["p_adjusted"]
    direction = "better" if row["delta"] > 0 else "worse"
    claim = f"significantly {direction}" if row["significant"] else "no significant difference"
    interval = f"{row['delta']:+.4f} [{row['delta_low']:+.4f}, {row['delta_high']:+.4f}]"
    return f"{pair}: {claim}, {metric} {interval}, p {format_p(p)}, {row['queries']:,} queries."


def _show(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _hash_rows(rows: pa.Table) -> str:
    """A digest of a table that does not depend on how it is chunked."""
    sink = pa.BufferOutputStream()
    whole = rows.combine_chunks()
    with pa.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole)
    return hashlib.sha256(sink.getvalue()).hexdigest()
