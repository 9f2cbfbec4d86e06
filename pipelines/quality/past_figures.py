"""Figures of earlier runs with the same inputs, read from their manifests without a Spark job."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.warehouse.runs import RUNS, Manifest, list_committed, select_live
from pipelines.warehouse.storage import Storage

# Two sources with equal values of these keys are the same input.
_PLACE_KEYS = ("path", "table", "where", "days")


def read_past_figures(
    storage: Storage, inputs: Mapping[str, Any], date: dt.date, *, limit: int
) -> list[dict[str, dict[str, Any]]]:
    """The figures of the live runs of the last `limit` dates before `date` with the same inputs, newest first."""
    days = sorted({name.split("/")[1] for name in storage.list(RUNS) if name.split("/")[1] < date.isoformat()})
    past: list[dict[str, dict[str, Any]]] = []
    for day in reversed(days):
        for manifest in select_live(list_committed(storage, date=day)):
            figures = _select_figures(manifest, inputs)
            past.extend([figures] if figures else [])
        if len(past) == limit:
            break
    return past


def _select_figures(manifest: Manifest, inputs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The figures of the inputs that both runs read, and of the outputs where all inputs are the same."""
    sources: Mapping[str, Any] = manifest.config.get("inputs", {})
    same = {name for name, source in inputs.items() if _list_place(sources.get(name)) == _list_place(source)}
    recorded: Mapping[str, Any] = manifest.checks.get("figures", {})
    figures = {name: {**record, **recorded.get(name, {})} for name, record in manifest.inputs.items() if name in same}
    if manifest.inputs.keys() <= same:
        figures |= {name: dict(output) for name, output in recorded.items() if name not in manifest.inputs}
    return figures


def _list_place(source: Mapping[str, Any] | None) -> Sequence[Any] | None:
    return None if source is None else [source.get(key) for key in _PLACE_KEYS]
