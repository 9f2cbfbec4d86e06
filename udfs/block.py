"""`Block`: many ranked lists with their labels, ready for the metric kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from udfs.categories import CategorySets
from udfs.graded import GAINS, GradedLabels, discount, is_relevant, weights_by_rank
from udfs.ragged import Bools, Floats, Ints, Ragged

Value = TypeVar("Value")
Array = npt.NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class QueryPool:
    """Where the labels of a block lie when each query has them once, however many of the lists are its own."""

    queries: Ragged  # the labels of each query
    query: Ints  # per list
    row: Ints  # per label of the block


@dataclass(frozen=True, eq=False)
class Hits:
    """The relevant documents of ranked lists, in rank order: all that most metrics need."""

    lists: Ragged  # `lists.place` numbers the relevant documents of a list, from 1
    rows: Ints  # the row of each in the block
    rank: Ints  # the rank of each in its list

    def counts(self, k: int | None) -> Ints:
        """Per list, the number of hits in its top k."""
        return self.lists.lengths if k is None else self.lists.counts(self.rank <= k)

    def sums(self, values: Floats, k: int | None) -> Floats:
        """Per list, the sum of `values`, one per hit, over its top k."""
        return self.lists.sums(values if k is None else np.where(self.rank <= k, values, 0.0))


@dataclass(frozen=True, eq=False)
class Block:
    """Ranked lists, best document first, and all labels of each list's query.

    `grade` holds one number per ranked document, NaN where it has no label; `labels` one per labelled
    document of the query, retrieved or not. Arrays that only some metrics need have names:
    `row_data` is aligned with `grade`, `label_data` with `labels`, `list_data` has one entry per list.
    Intermediate results are computed once and shared by all metrics and cut-offs.

    For labels that are drawn several times, `pool` has them by query, and `row_data["label"]` the row there of the
    label of each ranked document, −1 where it has none.
    """

    ranked: Ragged
    grade: Floats
    labelled: Ragged
    labels: Floats
    row_data: Mapping[str, Array] = field(default_factory=dict)
    label_data: Mapping[str, Array] = field(default_factory=dict)
    list_data: Mapping[str, Array] = field(default_factory=dict)
    pool: QueryPool | None = None
    sets: CategorySets | None = None  # what `category` and `subtopics` number, where a document has several
    _memo: dict[object, object] = field(default_factory=dict, repr=False)

    def cached(self, key: object, compute: Callable[[], Value]) -> Value:
        """The value under `key`, computed at its first use."""
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]  # type: ignore[return-value]

    @property
    def size(self) -> int:
        return self.ranked.size

    @cached_property
    def judged(self) -> Bools:
        """Per ranked document, whether it has a label."""
        return ~np.isnan(self.grade)

    @cached_property
    def shown(self) -> Bools:
        """Per ranked document, whether its label rests on evidence of its own: it was shown, or judged by a person."""
        return self.row_data["shown"].astype(np.bool_) if "shown" in self.row_data else self.judged

    @cached_property
    def _graded(self) -> GradedLabels:
        return GradedLabels(self.labelled, self.labels)

    def hits(self, rel: float | None) -> Hits:
        """The ranked documents that are relevant: with a grade of at least `rel`, or above 0."""

        def compute() -> Hits:
            mask = is_relevant(self.grade, rel)
            rows = np.flatnonzero(mask)
            return Hits(self.ranked.keep(mask), rows, self.ranked.place[rows])

        return self.cached(("hits", rel), compute)

    def count_hits(self, k: int | None, rel: float | None) -> Ints:
        """Per list, the number of relevant documents in its top k."""
        return self.cached(("hit_count", k, rel), lambda: self.hits(rel).counts(k))

    def find_first_hit(self, rel: float | None) -> Ints:
        """Per list, the rank of its first relevant document; 0 where it has none."""

        def compute() -> Ints:
            hits = self.hits(rel)
            rank = np.zeros(self.size, dtype=np.int64)
            first = hits.lists.place == 1
            rank[hits.lists.owner[first]] = hits.rank[first]
            return rank

        return self.cached(("first_hit", rel), compute)

    def count_relevant(self, rel: float | None) -> Ints:
        """Per list, the number of relevant documents of its query."""
        return self._graded.count_relevant(rel)

    def count_reachable(self, k: int | None, rel: float | None, norm: str) -> Ints:
        """Per list, the relevant documents of its query; with the norm `cut`, no more than the cut-off has room for."""
        relevant = self.count_relevant(rel)
        return np.minimum(relevant, k) if norm == "cut" and k else relevant

    def ideal(self, rel: float | None) -> tuple[Ragged, Floats]:
        """The grades of the relevant documents of each query, largest first: the ideal ranking."""
        return self._graded.ideal(rel)

    def within(self, k: int | None) -> Bools:
        """Per ranked document, whether it is in the top k."""
        return np.ones(self.ranked.rows, dtype=np.bool_) if k is None else self.ranked.place <= k

    def depth(self, k: int | None) -> Ints:
        """Per list, the length of its top k: less than k where the list is shorter."""
        return self.ranked.lengths if k is None else np.minimum(self.ranked.lengths, k)

    def gains(self, kind: str) -> Floats:
        """The gain of each ranked document with a grade above 0, in the order of `hits(None)`."""
        return self.cached(("gains", kind), lambda: GAINS[kind](self.grade[self.hits(None).rows]))

    def ideal_gains(self, kind: str) -> Floats:
        """The gain of each document of the ideal ranking `ideal(None)`."""
        return self._graded.ideal_gains(kind)

    def dcg(self, kind: str, k: int | None) -> Floats:
        """Per list, the discounted cumulative gain of its top k; a label of 0 or below has no gain."""
        hits = self.hits(None)
        discounted = self.cached(("discounted", kind), lambda: self.gains(kind) * weights_by_rank(discount, hits.rank))
        return self.cached(("dcg", kind, k), lambda: hits.sums(discounted, k))

    def ideal_dcg(self, kind: str, k: int | None) -> Floats:
        """Per list, the DCG of the top k of the ideal ranking, which is built from all labels."""
        return self._graded.ideal_dcg(kind, k)

    def condense(self, k: int | None = None) -> Block:
        """The top k (or all) without the unjudged documents; the others move up."""
        return self.cached(("condensed", k), lambda: self._keep_rows(self.shown & self.within(k)))

    def cut(self, depth: int | None) -> Block:
        """The lists down to this depth; as they are where none is longer."""
        if depth is None or self.ranked.lengths.max(initial=0) <= depth:
            return self
        return self.cached(("cut", depth), lambda: self._keep_rows(self.within(depth)))

    def _keep_rows(self, mask: Bools) -> Block:
        return Block(
            ranked=self.ranked.keep(mask),
            grade=self.grade[mask],
            labelled=self.labelled,
            labels=self.labels,
            row_data={name: values[mask] for name, values in self.row_data.items()},
            label_data=self.label_data,
            list_data=self.list_data,
            pool=self.pool,
            sets=self.sets,
        )


def safe_ratio(above: Floats | Ints, below: Floats | Ints, *, empty: float = 0.0) -> Floats:
    """`above / below`, and `empty` where `below` is 0."""
    ratio: Floats = np.divide(above, below, out=np.full(len(below), empty), where=below > 0)
    return ratio
