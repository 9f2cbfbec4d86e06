"""In memory, what takes more than one list: metrics between two systems or stages, and of a whole system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from schemas.errors import ConfigurationError, did_you_mean
from udfs.collect import ROWS_PER_BLOCK, Collected, collect
from udfs.conventions import Conventions
from udfs.ragged import Floats, Ragged
from udfs.registry import parse_all
from udfs.score import score_pairs
from udfs.tables import Source, table_like

Frame = TypeVar("Frame")


def evaluate_pairs(
    rankings: Frame,
    first: str,
    second: str,
    metrics: Sequence[str] = ("rbo", "rank_tau"),
    *,
    labels: Any = None,
    conventions: Conventions | None = None,
) -> Frame:
    """One row per query with the metrics between the lists of two systems; null where a metric is undefined.

    For a hand-over between stages (`retention`), `first` is the later stage and `second` the earlier one.
    """
    specs, conventions = parse_all(metrics), conventions or Conventions()
    source = Source(rankings, "rankings")
    judged = _no_labels() if labels is None else Source(labels, "labels")
    collected = collect(source, judged, conventions=conventions).checked(conventions)
    systems = [_number(collected, system) for system in (first, second)]
    query = np.arange(len(collected.queries))
    rows = np.bincount(collected.query, weights=collected.lists.lengths, minlength=len(query))
    parts: dict[str, list[Floats]] = {spec.key: [np.zeros(0)] for spec in specs}
    for part in Ragged.of_lengths(rows).slices(ROWS_PER_BLOCK):
        blocks = [collected.of(system, query[part]) for system in systems]
        for key, values in score_pairs(blocks[0], blocks[1], specs, conventions).items():
            parts[key].append(values)
    columns = {key: pa.array(np.concatenate(values), from_pandas=True) for key, values in parts.items()}
    return table_like(source, {"query_id": collected.queries, **columns})  # type: ignore[no-any-return]


def evaluate_systems(
    rankings: Frame,
    documents: Any,
    metrics: Sequence[str] = ("catalog_coverage@10",),
    *,
    conventions: Conventions | None = None,
) -> Frame:
    """One row per system with the metrics of all that it shows; `documents` is the catalogue."""
    specs = parse_all(metrics)
    for spec in specs:
        if spec.metric.scope != "system":
            raise ConfigurationError(f"{spec.name} is not a metric of a whole system", hint="use evaluate")
    source, catalogue = Source(rankings, "rankings"), Source(documents, "documents")
    conventions = conventions or Conventions()
    collected = collect(source, _no_labels(), documents=catalogue, conventions=conventions).checked(conventions)
    size = len(catalogue.ids("doc_id"))
    shown = [np.zeros((len(collected.systems), size), dtype=np.bool_) for _ in specs]
    for part, block, _ in collected.blocks():
        owner, place = collected.system[part][block.ranked.owner], block.row_data["catalogue"].astype(np.int64)
        for spec, seen in zip(specs, shown, strict=True):
            rows = block.within(spec.k) & (place >= 0)
            seen[owner[rows], place[rows]] = True
    values = {spec.key: spec.metric.kernel(seen.sum(axis=1), size) for spec, seen in zip(specs, shown, strict=True)}
    return table_like(source, {"system": collected.systems} | {key: pa.array(v) for key, v in values.items()})  # type: ignore[no-any-return]


def _no_labels() -> Source:
    text = pa.array([], pa.string())
    return Source(pa.table({"query_id": text, "doc_id": text, "grade": pa.array([], pa.float64())}), "labels")


def _number(collected: Collected, system: str) -> int:
    names: list[str] = collected.systems.to_pylist()
    if system not in names:
        raise ConfigurationError(f"rankings has no system {system!r}", hint=did_you_mean(system, names))
    return names.index(system)
