"""Many lists of different lengths as one flat array, and sums over them.

Every operation's answer for a list depends on that list alone, to the last bit: no sum runs across
the border of two lists. Results therefore do not change with how lists are grouped into blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

CELLS = 1 << 16  # of a rectangle of lists: what fits the processor's cache


class Ragged:
    """The borders of G lists in a flat array: list g is the rows `offsets[g]:offsets[g + 1]`."""

    def __init__(self, offsets: Ints) -> None:
        self.offsets = offsets

    @classmethod
    def of_lengths(cls, lengths: npt.ArrayLike) -> Ragged:
        return cls(np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))))

    @cached_property
    def lengths(self) -> Ints:
        return np.diff(self.offsets)

    @property
    def size(self) -> int:
        """How many lists there are."""
        return len(self.offsets) - 1

    @property
    def rows(self) -> int:
        """How many rows all lists have together."""
        return int(self.offsets[-1])

    @cached_property
    def owner(self) -> Ints:
        """Per row, the list that it belongs to."""
        return np.repeat(np.arange(self.size), self.lengths)

    @cached_property
    def place(self) -> Ints:
        """Per row, its place in its list, counted from 1."""
        return np.arange(1, self.rows + 1) - np.repeat(self.offsets[:-1], self.lengths)

    def sums(self, values: npt.NDArray[np.generic]) -> Floats:
        """Per list, the sum of its values, added in order."""
        weights = np.asarray(values, dtype=np.float64)
        return np.bincount(self.owner, weights=weights, minlength=self.size).astype(np.float64, copy=False)

    def counts(self, mask: Bools) -> Ints:
        """Per list, how many of its rows are marked."""
        return np.bincount(self.owner[mask], minlength=self.size)

    def running_counts(self, mask: Bools) -> Ints:
        """Per row, how many rows of its list up to and including it are marked."""
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

    def _rectangles(self) -> Iterator[tuple[Ints, Bools]]:
        """Lists of similar length together: their rows, and where those lie in a rectangle with one line a list."""
        width = np.ceil(np.log2(np.maximum(self.lengths, 1))).astype(np.int64)
        for bits in np.unique(width[self.lengths > 0]):
            alike = np.flatnonzero((width == bits) & (self.lengths > 0))
            columns = np.arange(int(self.lengths[alike].max()))
            lines = max(1, CELLS // len(columns))
            for first in range(0, len(alike), lines):
                lists = alike[first : first + lines]
                inside = columns < self.lengths[lists, None]
                yield (self.offsets[lists, None] + columns)[inside], inside

    def repeats(self, values: Ints) -> Ints:
        """Per row, how many earlier rows of its list hold the same value."""
        order = np.lexsort((values, self.owner))
        value, owner = values[order], self.owner[order]
        first = np.ones(self.rows, dtype=np.bool_)
        first[1:] = (value[1:] != value[:-1]) | (owner[1:] != owner[:-1])
        runs = np.flatnonzero(first)
        count = np.empty(self.rows, dtype=np.int64)
        count[order] = np.arange(self.rows) - np.repeat(runs, np.diff(np.append(runs, self.rows)))
        return count

    def keep(self, mask: Bools) -> Ragged:
        """The borders after the rows that are not marked are taken out."""
        return Ragged.of_lengths(self.counts(mask))

    def slices(self, limit: int) -> Iterator[slice]:
        """Consecutive runs of lists with at most `limit` rows each; a longer list stands alone."""
        start = 0
        while start < self.size:
            stop = int(np.searchsorted(self.offsets, self.offsets[start] + limit, side="right")) - 1
            stop = min(max(stop, start + 1), self.size)
            yield slice(start, stop)
            start = stop
