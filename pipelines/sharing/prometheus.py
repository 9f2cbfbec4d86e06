"""Figures of a run for Prometheus: a text file, or a Pushgateway. Label values are bounded in number and length."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from prometheus_client import CollectorRegistry, generate_latest, push_to_gateway, write_to_textfile
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

from pipelines.config_sharing import Prometheus
from pipelines.report.markup import cut
from pipelines.report.published import Published
from pipelines.runs import Manifest
from pipelines.storage import Storage
from schemas.errors import PublishError
from udfs.registry import parse
from udfs.statistics.plan import EVERYTHING

EDGES = np.arange(11) / 10
LONGEST = 100  # characters of a label's value
TIE = 1e-9


class Figures:
    """A collector of one run's figures, as Prometheus asks for them."""

    def __init__(self, storage: Storage, manifest: Manifest, settings: Prometheus) -> None:
        self.run = Published(storage, manifest)
        self.settings = settings

    def collect(self) -> Iterator[Metric]:
        """Every family of figures; the same names whatever the run."""
        manifest = self.run.manifest
        committed = dt.datetime.fromisoformat(manifest.committed_at).timestamp()
        yield _gauge("assay_last_success_timestamp_seconds", "When the last run was committed.", (), [((), committed)])
        seconds = [((stage,), value) for stage, value in manifest.seconds.items()]
        yield _gauge("assay_stage_seconds", "How long each stage took.", ("stage",), seconds)
        tables = [((name,), float(record.rows)) for name, record in manifest.tables.items()]
        yield _gauge("assay_rows", "Rows of each published table.", ("table",), tables)
        yield self._inputs()
        yield self._quality()
        verdicts = ("pass", "fail", "undecidable")
        gate = [((word,), float(sum(v["verdict"] == word for v in manifest.gate))) for word in verdicts]
        yield _gauge("assay_gate_conditions", "Conditions of the gate by verdict.", ("verdict",), gate)
        yield from self._means()
        yield self._histogram()

    def _inputs(self) -> Metric:
        rows = []
        for name, counts in self.run.manifest.inputs.items():
            rows.append(((name, "read"), float(counts.get("read") or 0)))
            rows.append(((name, "unusable"), float(sum(counts.get("rejected", {}).values()))))
        return _gauge("assay_input_rows", "Rows of each input, read and unusable.", ("table", "state"), rows)

    def _quality(self) -> Metric:
        found = self.run.manifest.checks.get("tables", {})
        rows = [
            ((name, severity), float(counts.get(kind, 0)))
            for name, counts in found.items()
            for severity, kind in (("warn", "warned"), ("error", "failed"))
        ]
        return _gauge("assay_quality_failures", "Checks of the data that failed.", ("table", "severity"), rows)

    def _means(self) -> Iterator[Metric]:
        manifest = self.run.manifest
        order = [parse(name).key for name in manifest.config.get("metrics", ())]
        rows = self.run.rows(
            "segment_metrics",
            most=self.settings.max_series,
            first=lambda r: (order.index(r["metric"]) if r["metric"] in order else len(order), r["system"]),
            where=(pc.field("segment") == EVERYTHING) & pc.field("macro").is_valid(),
        )
        said = {"": "Mean over queries.", "_low": "Lower end of its interval.", "_high": "Upper end of its interval."}
        for end, meaning in said.items():
            values = [((r["system"], r["metric"]), r[f"macro{end}"]) for r in rows if r[f"macro{end}"] is not None]
            yield _gauge(f"assay_metric{end}", meaning, ("system", "metric"), values)

    def _histogram(self) -> Metric:
        manifest = self.run.manifest
        name = self.settings.metric or next(iter(manifest.config.get("metrics", ())), None)
        systems = manifest.systems[: max(1, self.settings.max_series // (len(EDGES) + 3))]
        family = HistogramMetricFamily(
            self.settings.histogram, f"{name or 'A metric'} by query, over all queries of the run.", labels=["system"]
        )
        if name is None:
            return family
        for system, (counts, total) in _counted(self.run, parse(name).key, systems).items():
            running = np.cumsum(counts)
            ends = [*[f"{edge:.1f}" for edge in EDGES], "+Inf"]
            buckets = [(end, float(count)) for end, count in zip(ends, running, strict=True)]
            family.add_metric([cut(system, LONGEST)], buckets, total)
        return family


def _counted(run: Published, metric: str, systems: Sequence[str]) -> dict[str, tuple[np.ndarray, float]]:
    """Per system, how many values lie at or below each edge and above the one before, and their sum."""
    found = {system: (np.zeros(len(EDGES) + 1, np.int64), 0.0) for system in systems}
    for batch in run.batches("query_metrics", ["system", metric]):
        if metric not in batch.schema.names:
            break
        for system, mine in batch.to_pandas().groupby("system")[metric]:
            if system in found:
                values = mine.dropna().to_numpy(np.float64)
                counts, total = found[str(system)]
                counts += np.bincount(np.searchsorted(EDGES, values - TIE), minlength=len(EDGES) + 1)
                found[str(system)] = counts, total + float(values.sum())
    return found


def _gauge(name: str, meaning: str, labels: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], float]]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, number in rows:
        family.add_metric([cut(value, LONGEST) for value in values], number)
    return family


def export(storage: Storage, manifest: Manifest, settings: Prometheus) -> list[str]:
    """Write and push as configured; answers where to."""
    registry = CollectorRegistry()
    registry.register(Figures(storage, manifest, settings))
    told = []
    try:
        if settings.textfile is not None:
            Path(settings.textfile).parent.mkdir(parents=True, exist_ok=True)
            write_to_textfile(settings.textfile, registry)
            told.append(settings.textfile)
        if settings.pushgateway is not None:
            push_to_gateway(settings.pushgateway, job=settings.job, registry=registry, timeout=10)
            told.append(settings.pushgateway.rpartition("@")[2])
    except OSError as error:
        raise PublishError(f"the figures for Prometheus could not be told: {error}", where="prometheus") from None
    return told


def exposed(storage: Storage, manifest: Manifest, settings: Prometheus) -> str:
    """The text that Prometheus would read."""
    registry = CollectorRegistry()
    registry.register(Figures(storage, manifest, settings))
    return generate_latest(registry).decode()
