"""The headline metrics: those that a run is judged by, and those that are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipelines.warehouse.runs import Manifest
from udfs.registry import MetricSpec
from udfs.shown_metrics import list_shown_metrics


def select_headline_metrics(specs: Sequence[MetricSpec], gated: Collection[str]) -> tuple[MetricSpec, ...]:
    """The metrics with a value per query that the gate names, in the order of `specs`; the first without a gate."""
    per_query = [spec for spec in specs if spec.metric.scope != "system"]
    return tuple(spec for spec in per_query if spec.name in gated) or tuple(per_query[:1])


def read_shown_metrics(manifest: Manifest) -> tuple[str, ...]:
    """The names of the metrics that are shown of a published run."""
    return list_shown_metrics(manifest.config.get("metrics", ()), manifest.conventions.get("unjudged"))


def list_mean_forms(spec: MetricSpec) -> tuple[str, ...]:
    """The averages of a metric that are shown, as columns of `segment_metrics`; sums of gains also by traffic."""
    return ("macro", "weighted") if spec.metric.name == "dcg" else ("macro",)


def name_mean(spec: MetricSpec, form: str) -> str:
    """The heading of an average."""
    return spec.name if form == "macro" else f"{spec.name} by traffic"


def counts_other_queries(row: Mapping[str, Any] | None, reference: Mapping[str, Any] | None) -> bool:
    """Whether a mean is over another number of queries than the baseline's, so that the two do not compare."""
    return row is not None and reference is not None and bool(row["queries"] != reference["queries"])
