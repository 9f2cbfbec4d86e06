"""What earlier runs knew of the same tables. It comes from their manifests and costs no Spark job."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.runs import RUNS, Manifest, committed, live
from pipelines.storage import Storage

# An input is the same one where these keys of its source are.
_SAME = ("path", "table", "where", "days")


def past(storage: Storage, inputs: Mapping[str, Any], date: dt.date, *, most: int) -> list[dict[str, dict[str, Any]]]:
    """The figures of the live runs of the last dates before this, newest first; of inputs read from the same place."""
    days = sorted({name.split("/")[1] for name in storage.list(RUNS) if name.split("/")[1] < date.isoformat()})
    found: list[dict[str, dict[str, Any]]] = []
    for day in reversed(days):
        for manifest in live(committed(storage, date=day)):
            known = _figures(manifest, inputs)
            found.extend([known] if known else [])
        if len(found) == most:
            break
    return found


def _figures(manifest: Manifest, inputs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    given: Mapping[str, Any] = manifest.config.get("inputs", {})
    same = {name for name, source in inputs.items() if _place(given.get(name)) == _place(source)}
    figures: Mapping[str, Any] = manifest.checks.get("figures", {})
    known = {name: {**record, **figures.get(name, {})} for name, record in manifest.inputs.items() if name in same}
    if manifest.inputs.keys() <= same:  # the results of other inputs are no measure
        known |= {name: dict(of) for name, of in figures.items() if name not in manifest.inputs}
    return known


def _place(source: Mapping[str, Any] | None) -> Sequence[Any] | None:
    return None if source is None else [source.get(key) for key in _SAME]
