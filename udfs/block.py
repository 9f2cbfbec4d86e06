"""`Block`: many ranked lists with their labels, ready for the metric kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from udfs.ragged import Bools, Floats, Ints, Ragged

Value = TypeVar("Value")
Array = npt.NDArray[np.generic]

GAINS: Mapping[str, Callable[[Floats], Floats]] = {
    "exp2": lambda grade: np.exp2(grade) - 1.0,
    "linear": lambda grade: grade,
}


@dataclass(frozen=True, eq=False)
class Found:
    """The relevant documents of ranked lists, in rank order: all that most metrics look at."""

    lists: Ragged  # `lists.place` counts the relevant documents of a list: 1 for its first
    rows: Ints  # where each stands in the block
    rank: Ints  # where each stands in its list

    def counts(self, k: int | None) -> Ints:
        """Per list, how many there are in its top k."""
        return self.lists.lengths if k is None else self.lists.counts(self.rank <= k)

    def sums(self, values: Floats, k: int | None) -> Floats:
        """Per list, the sum of `values`, one for each relevant document, over its top k."""
        return self.lists.sums(values if k is None else np.where(self.rank <= k, values, 0.0))


@dataclass(frozen=True, eq=False)
class Block:
    """Ranked lists, best document first, and all labels of each list's query.

    `grade` holds one number per ranked document, NaN where it has no label; `labels` one per labelled
    document of the query, retrieved or not. What only some metrics need travels in the named arrays:
    `row_data` beside `grade`, `label_data` beside `labels`, `list_data` with one entry per list.
    Intermediate results are computed once and shared by all metrics and cut-offs.
    """

    ranked: Ragged
    grade: Floats
    labelled: Ragged
    labels: Floats
    row_data: Mapping[str, Array] = field(default_factory=dict)
    label_data: Mapping[str, Array] = field(default_factory=dict)
    list_data: Mapping[str, Array] = field(default_factory=dict)
    _memo: dict[object, object] = field(default_factory=dict, repr=False)

    def once(self, key: object, make: Callable[[], Value]) -> Value:
        """The value under `key`, made at its first use."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]  # type: ignore[return-value]

    @property
    def size(self) -> int:
        return self.ranked.size

    @cached_property
    def judged(self) -> Bools:
        """Per ranked document, whether it has a label."""
        return ~np.isnan(self.grade)

    def found(self, rel: float | None) -> Found:
        """The ranked documents that are relevant: their grade at least `rel`, or above 0."""

        def compute() -> Found:
            mask = is_relevant(self.grade, rel)
            rows = np.flatnonzero(mask)
            return Found(self.ranked.keep(mask), rows, self.ranked.place[rows])

        return self.once(("found", rel), compute)

    def hits_within(self, k: int | None, rel: float | None) -> Ints:
        """Per list, how many relevant documents stand in its top k."""
        return self.once(("hits_within", k, rel), lambda: self.found(rel).counts(k))

    def relevant(self, rel: float | None) -> Ints:
        """Per list, how many relevant documents its query has."""
        return self.once(("relevant", rel), lambda: self.labelled.counts(is_relevant(self.labels, rel)))

    @cached_property
    def _ideal(self) -> tuple[Ragged, Floats]:
        """The labels above 0 of each query, largest first; others add nothing to any ideal."""
        positive = self.labels > 0
        lists, grade = self.labelled.keep(positive), self.labels[positive]
        inside = lists.owner[1:] == lists.owner[:-1]
        if (grade[1:] > grade[:-1])[inside].any():
            grade = grade[np.lexsort((-grade, lists.owner))]
        return lists, grade

    def ideal(self, rel: float | None) -> tuple[Ragged, Floats]:
        """The grades of the relevant documents of each query, largest first: the ideal ranking."""

        def compute() -> tuple[Ragged, Floats]:
            lists, grade = self._ideal
            mask = is_relevant(grade, rel)
            return (lists, grade) if mask.all() else (lists.keep(mask), grade[mask])

        return self.once(("ideal", rel), compute)

    def within(self, k: int | None) -> Bools:
        """Per ranked document, whether it stands in the top k."""
        return np.ones(self.ranked.rows, dtype=np.bool_) if k is None else self.ranked.place <= k

    def depth(self, k: int | None) -> Ints:
        """Per list, how many documents its top k has: fewer than k where the list is shorter."""
        return self.ranked.lengths if k is None else np.minimum(self.ranked.lengths, k)

    def dcg(self, kind: str, k: int | None) -> Floats:
        """Per list, the discounted gain of its top k; a label of 0 or below gains nothing."""
        found = self.found(None)
        weighed = self.once(
            ("weighed", kind), lambda: GAINS[kind](self.grade[found.rows]) * by_rank(discount, found.rank)
        )
        return self.once(("dcg", kind, k), lambda: found.sums(weighed, k))

    def ideal_dcg(self, kind: str, k: int | None) -> Floats:
        """Per list, the largest discounted gain that k documents could have had, from all labels."""
        lists, grade = self._ideal
        weighed = self.once(("ideal_weighed", kind), lambda: GAINS[kind](grade) * by_rank(discount, lists.place))

        def compute() -> Floats:
            return lists.sums(weighed if k is None else np.where(lists.place <= k, weighed, 0.0))

        return self.once(("ideal_dcg", kind, k), compute)

    def condensed(self, k: int | None = None) -> Block:
        """The top k (or all) with the unjudged documents taken out, the others moved up."""
        return self.once(("condensed", k), lambda: self._kept(self.judged & self.within(k)))

    def _kept(self, mask: Bools) -> Block:
        return Block(
            self.ranked.keep(mask),
            self.grade[mask],
            self.labelled,
            self.labels,
            {name: values[mask] for name, values in self.row_data.items()},
            self.label_data,
            self.list_data,
        )


def is_relevant(grade: Floats, rel: float | None) -> Bools:
    """Whether each grade counts as relevant: at least `rel`, or above 0. NaN, no label, never does."""
    return grade > 0 if rel is None else grade >= rel


def discount(rank: Floats) -> Floats:
    """What a place at `rank` is worth in the metrics with a logarithmic discount."""
    worth: Floats = 1.0 / np.log2(rank + 1.0)
    return worth


def by_rank(worth: Callable[[Floats], Floats], rank: Ints) -> Floats:
    """`worth` of each rank, computed once for each rank that there is."""
    # The table's length is a power of two, so that a vectorised `worth` meets each rank at the same
    # place of its loop, whatever the block: its last bit must not depend on that.
    top = int(rank.max(initial=1))
    table = worth(np.arange(1, 1 << max(top.bit_length(), 4) + 1, dtype=np.float64))
    return table[rank - 1]


def safe_ratio(above: Floats | Ints, below: Floats | Ints, *, empty: float = 0.0) -> Floats:
    """`above / below`, and `empty` where `below` is 0; what that means there is for the caller to say."""
    ratio: Floats = np.divide(above, below, out=np.full(len(below), empty), where=below > 0)
    return ratio
