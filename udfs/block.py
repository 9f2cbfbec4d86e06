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

    def hits(self, rel: float | None) -> Bools:
        """Per ranked document, whether it is relevant: its grade at least `rel`, or above 0."""
        return self.once(("hits", rel), lambda: _relevant(self.grade, rel))

    def relevant(self, rel: float | None) -> Ints:
        """Per list, how many relevant documents its query has."""
        return self.once(("relevant", rel), lambda: self.labelled.counts(_relevant(self.labels, rel)))

    def gain(self, kind: str) -> Floats:
        """Per ranked document, its gain; 0 where it has no label or a negative one."""
        return self.once(("gain", kind), lambda: GAINS[kind](np.nan_to_num(np.maximum(self.grade, 0.0))))

    @cached_property
    def ideal_grade(self) -> Floats:
        """The labels of each query, negative ones as 0, largest first."""
        order = np.lexsort((-self.labels, self.labelled.owner))
        return np.maximum(self.labels[order], 0.0)

    @cached_property
    def discount(self) -> Floats:
        """Per ranked document, 1 / log2(rank + 1)."""
        discount: Floats = 1.0 / np.log2(self.ranked.place + 1.0)
        return discount

    def within(self, k: int | None) -> Bools:
        """Per ranked document, whether it stands in the top k."""
        return self.once(("within", k), lambda: _top(self.ranked, k))

    def hits_within(self, k: int | None, rel: float | None) -> Ints:
        """Per list, how many relevant documents stand in its top k."""
        return self.once(("hits_within", k, rel), lambda: self.ranked.counts(self.hits(rel) & self.within(k)))

    def dcg(self, kind: str, k: int | None) -> Floats:
        """Per list, the discounted gain of its top k."""

        def compute() -> Floats:
            weighed = self.once(("weighed", kind), lambda: self.gain(kind) * self.discount)
            return self.ranked.sums(np.where(self.within(k), weighed, 0.0))

        return self.once(("dcg", kind, k), compute)

    def ideal_dcg(self, kind: str, k: int | None) -> Floats:
        """Per list, the largest discounted gain that k documents could have had, from all labels."""

        def compute() -> Floats:
            gain = GAINS[kind](self.ideal_grade) / np.log2(self.labelled.place + 1.0)
            return self.labelled.sums(np.where(_top(self.labelled, k), gain, 0.0))

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


def _relevant(grade: Floats, rel: float | None) -> Bools:
    return grade > 0 if rel is None else grade >= rel


def _top(lists: Ragged, k: int | None) -> Bools:
    return np.ones(lists.rows, dtype=np.bool_) if k is None else lists.place <= k


def safe_ratio(above: Floats | Ints, below: Floats | Ints) -> Floats:
    """`above / below`, and 0 where `below` is 0; whether 0 is an answer there is for the caller to say."""
    ratio: Floats = np.divide(above, below, out=np.zeros(len(below)), where=below > 0)
    return ratio
