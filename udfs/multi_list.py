"""Metrics of more than one list, in memory: between two systems or stages, and of a whole system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from schemas.errors import ConfigurationError, did_you_mean
from udfs.block import Block
from udfs.collect import ROWS_PER_BLOCK, ListCollection, collect_lists
from udfs.compute import compute_pair_metrics, compute_system_metrics
from udfs.conventions import Conventions, read_conventions
from udfs.exposure import Exposure, count_exposure
from udfs.ragged import Floats, Ints, Ragged
from udfs.registry import parse_metrics
from udfs.sorting import sort_distinct
from udfs.tables import TableReader, convert_like, hash_ids

Frame = TypeVar("Frame")


def evaluate_pairs(
    rankings: Frame,
    first: str,
    second: str,
    metrics: Sequence[str] = ("rbo", "rank_tau"),
    *,
    labels: Any = None,
    conventions: Conventions | Mapping[str, Any] | None = None,
) -> Frame:
    """One row per query with the metrics between the lists of two systems; null where a metric is undefined.

    For a hand-over between stages (`retention`), `first` is the later stage and `second` the earlier one.
    """
    specs, rules = parse_metrics(metrics), read_conventions(conventions)
    source = TableReader(rankings, "rankings")
    judged = _empty_labels() if labels is None else TableReader(labels, "labels")
    collected = _collect(source, judged, rules)
    systems = [_find_system(collected, system) for system in (first, second)]
    query = np.arange(len(collected.queries))
    rows = np.bincount(collected.query, weights=collected.lists.lengths, minlength=len(query))
    parts: dict[str, list[Floats]] = {spec.key: [np.zeros(0)] for spec in specs}
    for part in Ragged.of_lengths(rows).slices(ROWS_PER_BLOCK):
        blocks = [collected.select_block(system, query[part]) for system in systems]
        for key, values in compute_pair_metrics(blocks[0], blocks[1], specs, rules).items():
            parts[key].append(values)
    columns = {key: pa.array(np.concatenate(values), from_pandas=True) for key, values in parts.items()}
    return convert_like(source, {"query_id": collected.queries, **columns})  # type: ignore[no-any-return]


def evaluate_systems(
    rankings: Frame,
    documents: Any,
    metrics: Sequence[str] = ("catalog_coverage@10",),
    *,
    conventions: Conventions | Mapping[str, Any] | None = None,
) -> Frame:
    """One row per system with the metrics of everything it shows; `documents` is the catalogue."""
    specs, rules = parse_metrics(metrics), read_conventions(conventions)
    source, catalogue = TableReader(rankings, "rankings"), TableReader(documents, "documents")
    collected = _collect(source, _empty_labels(), rules, documents=catalogue)
    depth = rules.depth
    parts = [_select_placed(collected, part, block.cut(depth)) for part, block, _ in collected.blocks()]
    system, doc, rank, row = np.concatenate([np.zeros((4, 0), dtype=np.int64), *parts], axis=1)
    lists = np.bincount(collected.system[collected.lists.lengths > 0], minlength=len(collected.systems))
    catalogue_size = len(sort_distinct(hash_ids(catalogue.ids("doc_id"))[0]))

    def exposure_at(k: int | None) -> Exposure:
        inside = np.ones(len(rank), dtype=np.bool_) if k is None else rank <= k
        return count_exposure(system[inside], doc[inside], row[inside] >= 0, lists=lists, catalogue_size=catalogue_size)

    values = compute_system_metrics(exposure_at, specs, rules)
    columns = {key: pa.array(numbers, from_pandas=True) for key, numbers in values.items()}
    return convert_like(source, {"system": collected.systems, **columns})  # type: ignore[no-any-return]


def _select_placed(collected: ListCollection, part: slice, block: Block) -> Ints:
    """Per ranked document of a block: its system, its id, its rank, and its row in the catalogue or −1."""
    system = collected.system[part][block.ranked.owner]
    row = block.row_data["catalogue"].astype(np.int64)
    return np.stack((system, block.row_data["doc"].astype(np.int64), block.ranked.place, row))


def _collect(
    rankings: TableReader, labels: TableReader, conventions: Conventions, *, documents: TableReader | None = None
) -> ListCollection:
    collected = collect_lists(rankings, labels, documents=documents, conventions=conventions)
    if conventions.ties == "error":
        collected.require_no_ties()
    return collected


def _empty_labels() -> TableReader:
    text = pa.array([], pa.string())
    return TableReader(pa.table({"query_id": text, "doc_id": text, "grade": pa.array([], pa.float64())}), "labels")


def _find_system(collected: ListCollection, system: str) -> int:
    names: list[str] = collected.systems.to_pylist()
    if system not in names:
        raise ConfigurationError(f"rankings has no system {system!r}", hint=did_you_mean(system, names))
    return names.index(system)
