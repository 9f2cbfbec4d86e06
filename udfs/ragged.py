"""Many lists of different lengths as one flat array, and sums over them.

Every result for a list depends on that list alone, to the last bit: no sum runs across the border of two lists.
Results therefore do not depend on how lists are grouped into blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)

CELLS = 1 << 16  # of a rectangle of lists, so that it fits the CPU cache


class Ragged:
    """The borders of G lists in a flat array: list g is the rows `offsets[g]:offsets[g + 1]`."""

    def __init__(self, offsets: Ints) -> None:
        self.offsets = offsets

    @classmethod
    def of_lengths(cls, lengths: npt.ArrayLike) -> Ragged:
        return cls(np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))))

    @classmethod
    def of_sorted(cls, *keys: npt.NDArray[np.generic]) -> Ragged:
        """The runs of rows with equal keys; rows with equal keys must be adjacent."""
        differs = np.ones(len(keys[0]), dtype=np.bool_)
        differs[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
        return cls(np.append(np.flatnonzero(differs), len(differs)))

    @cached_property
    def lengths(self) -> Ints:
        return np.diff(self.offsets)

    @property
    def size(self) -> int:
        """The number of lists."""
        return len(self.offsets) - 1

    @property
    def rows(self) -> int:
        """The number of rows of all lists."""
        return int(self.offsets[-1])

    @cached_property
    def owner(self) -> Ints:
        """Per row, the number of its list."""
        return np.repeat(np.arange(self.size), self.lengths)

    @cached_property
    def place(self) -> Ints:
        """Per row, its position in its list, from 1."""
        return np.arange(1, self.rows + 1) - np.repeat(self.offsets[:-1], self.lengths)

    def sums(self, values: npt.NDArray[np.generic]) -> Floats:
        """Per list, the sum of its values, added in order."""
        weights = np.asarray(values, dtype=np.float64)
        return np.bincount(self.owner, weights=weights, minlength=self.size).astype(np.float64, copy=False)

    def reduce(self, ufunc: np.ufunc, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Per list, none of which may be empty, `ufunc` reduced over its values."""
        reduced: npt.NDArray[Number] = ufunc.reduceat(values, self.offsets[:-1]) if self.size else values[:0]
        return reduced

    def counts(self, mask: Bools) -> Ints:
        """Per list, the number of its rows in the mask."""
        return np.bincount(self.owner[mask], minlength=self.size)

    def running_counts(self, mask: Bools) -> Ints:
        """Per row, the number of rows of its list in the mask, up to and including it."""
        total: Ints = np.concatenate(([0], np.cumsum(mask, dtype=np.int64)))
        before: Ints = np.repeat(total[self.offsets[:-1]], self.lengths)
        return total[1:] - before

    def running(self, ufunc: np.ufunc, values: Floats) -> Floats:
        """Per row, `ufunc` accumulated over its list up to and including it.

        Lists of similar length share a rectangle, so that NumPy accumulates each in a row of its own:
        a flat cumulative sum would let rounding leak from one list into the next.
        """
        result = np.empty_like(values)
        for rows, inside in self._rectangles():
            rectangle = np.full(inside.shape, ufunc.identity, dtype=np.float64)
            rectangle[inside] = values[rows]
            result[rows] = ufunc.accumulate(rectangle, axis=1)[inside]
        return result

    def argsort(self, values: Floats) -> Ints:
        """The rows in ascending order of `values` within each list; equal ones stay in order."""
        order = np.empty(self.rows, dtype=np.int64)
        for rows, inside in self._rectangles():
            rectangle = np.full(inside.shape, np.inf)
            rectangle[inside] = values[rows]
            place = np.argsort(rectangle, axis=1, kind="stable")[inside]
            order[rows] = self.offsets[:-1][self.owner[rows]] + place
        return order

    def sort(self, values: Floats) -> Floats:
        """The values of each list in ascending order."""
        result = np.empty_like(values)
        for rows, inside in self._rectangles():
            rectangle = np.full(inside.shape, np.inf)
            rectangle[inside] = values[rows]
            result[rows] = np.sort(rectangle, axis=1)[inside]
        return result

    def _rectangles(self) -> Iterator[tuple[Ints, Bools]]:
        """The rows of lists of similar length, and where those lie in a rectangle with one line a list."""
        for _, rows in self.rectangles():
            inside = rows >= 0
            yield rows[inside], inside

    def rectangles(self, most: int | None = None) -> Iterator[tuple[Ints, Ints]]:
        """Lists of similar length together: their numbers, and a line with the first `most` rows of each, −1 beyond."""
        lengths = self.lengths if most is None else np.minimum(self.lengths, most)
        width = np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
        for bits in np.unique(width[lengths > 0]):
            alike = np.flatnonzero((width == bits) & (lengths > 0))
            columns = np.arange(int(lengths[alike].max()))
            lines = max(1, CELLS // len(columns))
            for first in range(0, len(alike), lines):
                lists = alike[first : first + lines]
                yield lists, np.where(columns < lengths[lists, None], self.offsets[lists, None] + columns, -1)

    def repeats(self, values: Ints) -> Ints:
        """Per row, the number of earlier rows of its list with the same value."""
        order = np.lexsort((values, self.owner))
        value, owner = values[order], self.owner[order]
        first = np.ones(self.rows, dtype=np.bool_)
        first[1:] = (value[1:] != value[:-1]) | (owner[1:] != owner[:-1])
        runs = np.flatnonzero(first)
        count = np.empty(self.rows, dtype=np.int64)
        count[order] = np.arange(self.rows) - np.repeat(runs, np.diff(np.append(runs, self.rows)))
        return count

    def keep(self, mask: Bools) -> Ragged:
        """The lists with only the rows in the mask."""
        return Ragged.of_lengths(self.counts(mask))

    def slices(self, limit: int) -> Iterator[slice]:
        """Consecutive slices of lists with at most `limit` rows each; a longer list gets a slice of its own."""
        start = 0
        while start < self.size:
            stop = int(np.searchsorted(self.offsets, self.offsets[start] + limit, side="right")) - 1
            stop = min(max(stop, start + 1), self.size)
            yield slice(start, stop)
            start = stop
