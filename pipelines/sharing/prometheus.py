"""Export figures of a run for Prometheus, to a text file or a Pushgateway. Labels are bounded in number and length."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from prometheus_client import CollectorRegistry, generate_latest, push_to_gateway, write_to_textfile
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

from pipelines.sharing.deadline import call_within
from pipelines.sharing.settings import PrometheusSettings
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables
from schemas.errors import PublishError
from schemas.redact import redact_text
from udfs.registry import parse_metric
from udfs.statistics.counting import TIE
from udfs.statistics.plan import EVERYTHING

EDGES = np.arange(11) / 10
LONGEST = 100  # characters of a label value
PUSH_SECONDS = 20.0  # for all of a push


class RunCollector:
    """A Prometheus collector of the figures of one run."""

    def __init__(self, storage: Storage, manifest: Manifest, settings: PrometheusSettings) -> None:
        self.run = RunTables(storage, manifest)
        self.settings = settings

    def collect(self) -> Iterator[Metric]:
        """Every metric family; the names are the same for every run."""
        manifest = self.run.manifest
        committed = dt.datetime.fromisoformat(manifest.committed_at).timestamp()
        yield _gauge("assay_last_success_timestamp_seconds", "When the last run was committed.", (), [((), committed)])
        seconds = [((stage,), value) for stage, value in manifest.seconds.items()]
        yield _gauge("assay_stage_seconds", "How long each stage took.", ("stage",), seconds)
        tables = [((name,), float(record.rows)) for name, record in manifest.tables.items()]
        yield _gauge("assay_rows", "Rows of each published table.", ("table",), tables)
        yield self._collect_inputs()
        yield self._collect_quality()
        verdicts = ("pass", "fail", "undecidable")
        gate = [((word,), float(sum(v["verdict"] == word for v in manifest.gate))) for word in verdicts]
        yield _gauge("assay_gate_conditions", "Conditions of the gate by verdict.", ("verdict",), gate)
        yield from self._collect_means()
        yield self._collect_histogram()

    def _collect_inputs(self) -> Metric:
        rows = []
        for name, counts in self.run.manifest.inputs.items():
            rows.append(((name, "read"), float(counts.get("read") or 0)))
            rows.append(((name, "unusable"), float(sum(counts.get("rejected", {}).values()))))
        return _gauge("assay_input_rows", "Rows of each input, read and unusable.", ("table", "state"), rows)

    def _collect_quality(self) -> Metric:
        tables = self.run.manifest.checks.get("tables", {})
        rows = [
            ((name, severity), float(counts.get(kind, 0)))
            for name, counts in tables.items()
            for severity, kind in (("warn", "warned"), ("error", "failed"))
        ]
        return _gauge("assay_quality_failures", "Checks of the data that failed.", ("table", "severity"), rows)

    def _collect_means(self) -> Iterator[Metric]:
        manifest = self.run.manifest
        order = [parse_metric(name).key for name in manifest.config.get("metrics", ())]
        rows = self.run.rows(
            "segment_metrics",
            most=self.settings.max_series,
            first=lambda r: (order.index(r["metric"]) if r["metric"] in order else len(order), r["system"]),
            where=(pc.field("segment") == EVERYTHING) & pc.field("macro").is_valid(),
        )
        ends = {"": "Mean over queries.", "_low": "Lower end of its interval.", "_high": "Upper end of its interval."}
        for end, meaning in ends.items():
            values = [((r["system"], r["metric"]), r[f"macro{end}"]) for r in rows if r[f"macro{end}"] is not None]
            yield _gauge(f"assay_metric{end}", meaning, ("system", "metric"), values)

    def _collect_histogram(self) -> Metric:
        manifest = self.run.manifest
        name = self.settings.metric or next(iter(manifest.config.get("metrics", ())), None)
        systems = manifest.systems[: max(1, self.settings.max_series // (len(EDGES) + 3))]
        family = HistogramMetricFamily(
            self.settings.histogram, f"{name or 'A metric'} by query, over all queries of the run.", labels=["system"]
        )
        if name is None:
            return family
        for system, (counts, total) in _count_values(self.run, parse_metric(name).key, systems).items():
            running = np.cumsum(counts)
            ends = [*[f"{edge:.1f}" for edge in EDGES], "+Inf"]
            buckets = [(end, float(count)) for end, count in zip(ends, running, strict=True)]
            family.add_metric([_shorten(system)], buckets, total)
        return family


def _count_values(run: RunTables, metric: str, systems: Sequence[str]) -> dict[str, tuple[np.ndarray, float]]:
    """Per system, the number of values in (previous edge, edge] for each edge, and their sum."""
    totals = {system: (np.zeros(len(EDGES) + 1, np.int64), 0.0) for system in systems}
    for batch in run.batches("query_metrics", ["system", metric]):
        if metric not in batch.schema.names:
            break
        for system, column in batch.to_pandas().groupby("system")[metric]:
            if system in totals:
                values = column.dropna().to_numpy(np.float64)
                counts, total = totals[str(system)]
                counts += np.bincount(np.searchsorted(EDGES, values - TIE), minlength=len(EDGES) + 1)
                totals[str(system)] = counts, total + float(values.sum())
    return totals


def _gauge(name: str, meaning: str, labels: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], float]]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, number in rows:
        family.add_metric([_shorten(value) for value in values], number)
    return family


def _shorten(value: str) -> str:
    """A label value of bounded length; two long ones with the same beginning stay two, by a digest at the end."""
    if len(value) <= LONGEST:
        return value
    digest = hashlib.sha256(value.encode()).hexdigest()[:8]
    return f"{value[: LONGEST - len(digest) - 1]}…{digest}"


def export_figures(storage: Storage, manifest: Manifest, settings: PrometheusSettings) -> list[str]:
    """Write and push the figures as configured, and return the targets."""
    registry = CollectorRegistry()
    registry.register(RunCollector(storage, manifest, settings))
    targets = []
    try:
        if settings.textfile is not None:
            Path(settings.textfile).parent.mkdir(parents=True, exist_ok=True)
            write_to_textfile(settings.textfile, registry)
            targets.append(settings.textfile)
        if settings.pushgateway is not None:
            address = settings.pushgateway
            call_within(PUSH_SECONDS, lambda: push_to_gateway(address, job=settings.job, registry=registry))
            targets.append(redact_text(address))
    except OSError as error:
        raise PublishError(f"cannot export the figures for Prometheus: {error}", where="prometheus") from None
    return targets


def render_figures(storage: Storage, manifest: Manifest, settings: PrometheusSettings) -> str:
    """The figures in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(RunCollector(storage, manifest, settings))
    return generate_latest(registry).decode()
