"""`GradedLabels`: the labels of many queries, their relevant documents and their ideal rankings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, cached_property

import numpy as np

from udfs.ragged import Bools, Floats, Ints, Ragged

GAINS: Mapping[str, Callable[[Floats], Floats]] = {
    "exp2": lambda grade: np.exp2(grade) - 1.0,
    "linear": lambda grade: grade,
}
MAX_EXP2_GRADE = 60.0  # of a gain 2^g − 1: beyond it, one document outweighs all others to the last bit
_MOST_LEVELS = 8  # grades up to this number are counted rather than sorted
_MOST_CASES = 1 << 17  # of a table of ideal DCGs


class GradedLabels:
    """One grade per labelled document, query by query. Results are computed once.

    Small whole grades, as drawn ones are, are counted by level: their ideal ranking needs no sorting.
    """

    def __init__(self, queries: Ragged, grade: Floats) -> None:
        self.queries = queries
        self.grade = grade
        self._relevant: dict[float | None, Ints] = {}
        self._dcg: dict[tuple[str, int | None], Floats] = {}

    def count_relevant(self, rel: float | None) -> Ints:
        """Per query, the number of relevant documents."""
        if rel not in self._relevant:
            self._relevant[rel] = self._count_relevant(rel)
        return self._relevant[rel]

    def ideal(self, rel: float | None) -> tuple[Ragged, Floats]:
        """The grades of the relevant documents of each query, largest first: the ideal ranking."""
        lists, grade = self._ideal
        mask = is_relevant(grade, rel)
        return (lists, grade) if mask.all() else (lists.keep(mask), grade[mask])

    def ideal_gains(self, kind: str) -> Floats:
        """The gain of each document of the ideal ranking `ideal(None)`."""
        return GAINS[kind](self._ideal[1])

    def ideal_dcg(self, kind: str, k: int | None) -> Floats:
        """Per query, the DCG of the top k of its ideal ranking."""
        if (kind, k) not in self._dcg:
            lists, grade = self._ideal
            self._dcg[kind, k] = _sum_discounted(lists, GAINS[kind](grade), k)
        return self._dcg[kind, k]

    @cached_property
    def _levels(self) -> Ints | None:
        """Per query, the number of documents of every grade above 0, highest first; None unless grades are few.

        Sorted labels, as the published ones are, are None too: they are ranked already.
        """
        if self._is_sorted or not len(self.grade):
            return None
        top = self.grade.max()
        if not 0 < top <= _MOST_LEVELS or self.grade.min() < 0:
            return None
        level = self.grade.astype(np.int64)
        if not np.array_equal(level, self.grade):
            return None
        width = int(top) + 1
        counts = np.bincount(self.queries.owner * width + level, minlength=self.queries.size * width)
        return counts.reshape(self.queries.size, width)[:, :0:-1]

    @cached_property
    def _is_sorted(self) -> bool:
        """Whether the labels above 0 of each query come largest first."""
        rising = np.flatnonzero(self.grade[1:] > self.grade[:-1])
        inside = self.queries.owner[rising] == self.queries.owner[rising + 1]
        return not inside.any()

    @cached_property
    def _ideal(self) -> tuple[Ragged, Floats]:
        """The labels above 0 of each query, largest first; other labels have no gain."""
        if self._levels is not None:
            grades = np.arange(self._levels.shape[1], 0, -1, dtype=np.float64)
            return Ragged.of_lengths(self._levels.sum(axis=1)), _repeat_grades(grades, self._levels)
        positive = self.grade > 0
        lists, grade = self.queries.keep(positive), self.grade[positive]
        return lists, grade if self._is_sorted else -lists.sort(-grade)

    def _count_relevant(self, rel: float | None) -> Ints:
        if self._levels is not None and (rel is None or rel > 0):
            width = self._levels.shape[1]  # column c has the grade `width` − c
            columns = width if rel is None else max(width + 1 - math.ceil(rel), 0)
            relevant: Ints = self._levels[:, :columns].sum(axis=1)
            return relevant
        return self.queries.counts(is_relevant(self.grade, rel))


@cache
def tabulate_dcg(kind: str, k: int | None, levels: int) -> Floats | None:
    """The DCG of k documents of grades up to `levels`; None where there are too many cases.

    The numbers of documents of each grade, highest first, are the digits of a row's number to base k + 1.
    """
    if k is None or (k + 1) ** levels > _MOST_CASES:
        return None
    counts = np.stack(np.unravel_index(np.arange((k + 1) ** levels), (k + 1,) * levels), axis=1)
    counts[counts.sum(axis=1) > k] = 0  # never looked up
    gains = _repeat_grades(GAINS[kind](np.arange(levels, 0, -1, dtype=np.float64)), counts)
    return _sum_discounted(Ragged.of_lengths(counts.sum(axis=1)), gains, k)


def _sum_discounted(lists: Ragged, gains: Floats, k: int | None) -> Floats:
    discounted = gains * weights_by_rank(discount, lists.place)
    return lists.sums(discounted if k is None else np.where(lists.place <= k, discounted, 0.0))


def _repeat_grades(values: Floats, levels: Ints) -> Floats:
    return np.repeat(np.tile(values, len(levels)), levels.ravel())


def is_relevant(grade: Floats, rel: float | None) -> Bools:
    """Whether each grade counts as relevant: at least `rel`, or above 0. NaN (no label) never does."""
    return grade > 0 if rel is None else grade >= rel


def discount(rank: Floats) -> Floats:
    """The logarithmic discount of DCG: 1 / log2(rank + 1)."""
    weight: Floats = 1.0 / np.log2(rank + 1.0)
    return weight


def weights_by_rank(weigh: Callable[[Floats], Floats], rank: Ints) -> Floats:
    """`weigh` of each rank, computed once per distinct rank."""
    # The length of the table is a power of two, so that a vectorised `weigh` always processes a rank at the same
    # position of its loop: the last bit of a weight must not depend on the block.
    top = int(rank.max(initial=1))
    table = weigh(np.arange(1, 1 << max(top.bit_length(), 4) + 1, dtype=np.float64))
    return table[rank - 1]
