"""The rows of one partition as arrays: one entry per query with its row per system, ordered by unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.ragged import Bools, Floats, Ints
from udfs.statistics.plan import BETWEEN, EVERYTHING, Plan, name_value
from udfs.statistics.resample import Hashes
from udfs.tables import join_bytes

# 64-bit hashes of the query and of its independent unit, and the numbers of the plan as one list: a list is transferred
# to Python faster than columns, and many lists are a matrix. No segment begins with an underscore.
QUERY, UNIT, NUMBERS = "_query", "_unit", "_numbers"
DRAWS = "_draws"  # the draws of all metrics, one after the other, as the bytes of 32-bit floats


@dataclass(frozen=True, eq=False)
class Frame:
    """Queries ordered by unit; `at[s, q]` is the row of system s for query q, −1 where it has none."""

    values: Floats  # rows × numbers of the plan
    weight: Floats  # per query
    unit: Hashes  # per query
    at: Ints
    codes: tuple[Ints, ...]  # per cut of the plan, the cell of each query
    cells: tuple[list[str], ...]  # per cut, the names of its cells
    draws: npt.NDArray[np.float32] | None = (
        None  # rows × varying metrics × draws of their labels, where they were drawn
    )

    @property
    def size(self) -> int:
        return len(self.weight)

    def chunks(self, limit: int) -> Iterator[slice]:
        """Slices of about `limit` consecutive queries; a unit is never split."""
        starts = np.flatnonzero(np.concatenate(([True], self.unit[1:] != self.unit[:-1])))
        borders = np.append(starts, self.size)
        start = 0
        while start < self.size:
            stop = int(borders[np.searchsorted(borders, min(start + limit, self.size))])
            yield slice(start, stop)
            start = stop

    def numbers(self, system: int, part: slice) -> Floats:
        """The numbers of one system for some queries; NaN where it has no row."""
        rows = self.at[system, part]
        numbers: Floats = self.values[rows]
        numbers[rows < 0] = np.nan
        return numbers

    def label_draws(self, system: int, part: slice) -> Floats:
        """Some queries × varying metrics × draws of one system; NaN where it has no row."""
        assert self.draws is not None
        rows = self.at[system, part]
        draws: Floats = self.draws[rows].astype(np.float64)
        draws[rows < 0] = np.nan
        return draws


def build_frame(table: pa.Table, plan: Plan) -> Frame:
    """The frame of these rows. A query that a system has twice counts once, with its last row."""
    query = _read_hashes(table, QUERY).view(np.uint64)
    unit = _read_hashes(table, UNIT).view(np.uint64) if plan.clustered else query
    order = _order_by_unit(query, unit)
    query, unit = query[order], unit[order]
    first = np.concatenate(([True], (query[1:] != query[:-1]) | (unit[1:] != unit[:-1])))
    owner, starts = np.cumsum(first) - 1, np.flatnonzero(first)
    at = np.full((len(plan.systems), len(starts)), -1, dtype=np.int64)
    system, names = _encode(table["system"])
    place = np.array([plan.systems.index(name) for name in names], dtype=np.int64)
    at[place[system[order]], owner] = order
    columns = {name: _encode(table[name]) for name in plan.columns}
    cut = [_name_cells([columns[name] for name in names], order[starts]) for names in plan.cuts]
    shape = (sum(plan.varying), plan.draws)
    return Frame(
        values=_stack_lists(table[NUMBERS], len(plan.numbers)),
        weight=table["weight"].to_numpy()[order[starts]],
        unit=unit[starts],
        at=at,
        codes=tuple(codes for codes, _ in cut),
        cells=tuple(cells for _, cells in cut),
        draws=_stack_bytes(table[DRAWS], *shape) if plan.draw_sets else None,
    )


def _order_by_unit(query: Hashes, unit: Hashes) -> Ints:
    """An order of the rows by unit and query; unchanged where the rows of each query are contiguous already."""
    if unit is query:
        heads = np.sort(query[_mark_changes(query)])
        if (heads[1:] != heads[:-1]).all():
            return np.arange(len(query))
    return np.lexsort((query, unit))


def has_every_system(table: pa.Table, plan: Plan) -> Bools:
    """Which rows belong to a complete query: every system has a row here."""
    query, needed = _read_hashes(table, QUERY), len(plan.systems)
    lengths = np.diff(np.flatnonzero(_mark_changes(query)), append=len(query))
    if (lengths >= needed).all():  # mostly they are contiguous
        return np.ones(len(query), dtype=np.bool_)
    _, inverse, counts = np.unique(query, return_inverse=True, return_counts=True)
    complete: Bools = counts[inverse] >= needed
    return complete


def _mark_changes(values: npt.NDArray[Any]) -> Bools:
    """Where a value differs from the previous one; True for the first."""
    return np.concatenate(([True], values[1:] != values[:-1]))


def _name_cells(columns: list[tuple[Ints, list[str]]], rows: Ints) -> tuple[Ints, list[str]]:
    """The cell of each of `rows` when grouped by these columns, and the names of the cells."""
    if not columns:
        return np.zeros(len(rows), dtype=np.int64), [EVERYTHING]
    codes = np.zeros(len(rows), dtype=np.int64)
    for column, names in columns:
        codes = codes * len(names) + column[rows]
    every = [names for _, names in columns]
    if prod(map(len, every)) <= len(codes):  # then counting is faster than sorting
        there = np.bincount(codes, minlength=1) > 0
        seen, inverse = np.flatnonzero(there), (np.cumsum(there) - 1)[codes]
    else:
        seen, inverse = np.unique(codes, return_inverse=True)
    places = np.unravel_index(seen, [len(names) for names in every])
    parts = [[names[place] for place in of] for names, of in zip(every, places, strict=True)]
    return inverse, [BETWEEN.join(cell) for cell in zip(*parts, strict=True)]


def _encode(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """A column of text as codes, and the text of each code."""
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    codes: Ints = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [name_value(value) for value in coded.dictionary.to_pylist()]


def _read_hashes(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = table[name].to_numpy()
    return numbers


def _stack_lists(lists: pa.ChunkedArray, width: int) -> Floats:
    """Lists of equal length as the rows of an array; null becomes NaN."""
    numbers = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in lists.chunks]
    return np.concatenate(numbers).astype(np.float64, copy=False).reshape(len(lists), width)


def _stack_bytes(rows: pa.ChunkedArray, *shape: int) -> npt.NDArray[np.float32]:
    """The bytes of equally many numbers as the rows of an array, each of this shape."""
    numbers = [np.frombuffer(join_bytes(chunk), dtype="<f4") for chunk in rows.chunks if len(chunk)]
    return np.concatenate([np.zeros(0, dtype=np.float32), *numbers]).reshape(len(rows), *shape)
