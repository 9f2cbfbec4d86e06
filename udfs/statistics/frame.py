"""The rows of one partition as arrays: one entry per query, every system beside it, units together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.ragged import Bools, Floats, Ints
from udfs.statistics.plan import BETWEEN, EVERYTHING, NO_VALUE, Plan
from udfs.statistics.resample import Hashes

# 64-bit hashes of the query, and of what is independent of the others, and the numbers of the plan as one list: a
# list goes to Python faster than columns do, and many of them are a matrix. No segment begins with an underscore.
QUERY, UNIT, NUMBERS = "_query", "_unit", "_numbers"


@dataclass(frozen=True, eq=False)
class Frame:
    """Queries, those of a unit together; `at[s, q]` is the row of system s for query q, −1 where it has none."""

    values: Floats  # rows × numbers of the plan
    weight: Floats  # per query
    unit: Hashes  # per query
    at: Ints
    codes: tuple[Ints, ...]  # per cut of the plan, the cell of each query
    cells: tuple[list[str], ...]  # per cut, what its cells are called

    @property
    def size(self) -> int:
        return len(self.weight)

    def chunks(self, limit: int) -> Iterator[slice]:
        """Consecutive queries, about `limit` at a time; a unit is never split."""
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
        found: Floats = self.values[rows]
        found[rows < 0] = np.nan
        return found


def frame_of(table: pa.Table, plan: Plan) -> Frame:
    """The frame of these rows. A query that a system has twice counts once, with its last row."""
    query = _numbers(table, QUERY).view(np.uint64)
    unit = _numbers(table, UNIT).view(np.uint64) if plan.clustered else query
    order = _together(query, unit)
    query, unit = query[order], unit[order]
    first = np.concatenate(([True], (query[1:] != query[:-1]) | (unit[1:] != unit[:-1])))
    owner, starts = np.cumsum(first) - 1, np.flatnonzero(first)
    at = np.full((len(plan.systems), len(starts)), -1, dtype=np.int64)
    system, names = _coded(table["system"])
    place = np.array([plan.systems.index(name) for name in names], dtype=np.int64)
    at[place[system[order]], owner] = order
    columns = {name: _coded(table[name]) for name in plan.columns}
    cut = [_cells([columns[name] for name in names], order[starts]) for names in plan.cuts]
    return Frame(
        _matrix(table[NUMBERS], len(plan.numbers)),
        table["weight"].to_numpy()[order[starts]],
        unit[starts],
        at,
        tuple(codes for codes, _ in cut),
        tuple(cells for _, cells in cut),
    )


def _together(query: Hashes, unit: Hashes) -> Ints:
    """The rows in an order in which those of a unit, and in it of a query, stand together; as they come if they do."""
    if unit is query:
        heads = np.sort(query[_changes(query)])
        if (heads[1:] != heads[:-1]).all():
            return np.arange(len(query))
    return np.lexsort((query, unit))


def paired(table: pa.Table, plan: Plan) -> Bools:
    """Which rows belong to a query for which every system is here: nothing elsewhere concerns them."""
    query, needed = _numbers(table, QUERY), len(plan.systems)
    lengths = np.diff(np.flatnonzero(_changes(query)), append=len(query))
    if (lengths >= needed).all():  # mostly they follow each other, and need not be sought
        return np.ones(len(query), dtype=np.bool_)
    _, inverse, counts = np.unique(query, return_inverse=True, return_counts=True)
    complete: Bools = counts[inverse] >= needed
    return complete


def _changes(values: npt.NDArray[Any]) -> Bools:
    """Where a value differs from the one before, as the first does."""
    return np.concatenate(([True], values[1:] != values[:-1]))


def _cells(columns: list[tuple[Ints, list[str]]], rows: Ints) -> tuple[Ints, list[str]]:
    """The cell of each of `rows` when cut by these columns, and the names of the cells."""
    if not columns:
        return np.zeros(len(rows), dtype=np.int64), [EVERYTHING]
    codes = np.zeros(len(rows), dtype=np.int64)
    for column, names in columns:
        codes = codes * len(names) + column[rows]
    every = [names for _, names in columns]
    if prod(map(len, every)) <= len(codes):  # then counting is quicker than sorting
        there = np.bincount(codes, minlength=1) > 0
        seen, inverse = np.flatnonzero(there), (np.cumsum(there) - 1)[codes]
    else:
        seen, inverse = np.unique(codes, return_inverse=True)
    places = np.unravel_index(seen, [len(names) for names in every])
    parts = [[names[place] for place in of] for names, of in zip(every, places, strict=True)]
    return inverse, [BETWEEN.join(cell) for cell in zip(*parts, strict=True)]


def _coded(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """A column of text as numbers, and what they stand for."""
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    codes: Ints = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [NO_VALUE if name is None else name for name in coded.dictionary.to_pylist()]


def _numbers(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = table[name].to_numpy()
    return numbers


def _matrix(lists: pa.ChunkedArray, width: int) -> Floats:
    """Lists of the same length one below the other; null becomes NaN."""
    numbers = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in lists.chunks]
    return np.concatenate(numbers).astype(np.float64, copy=False).reshape(-1, width)
