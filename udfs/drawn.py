"""Blocks whose labels are drawn several times: order, matching, discounts and ideal positions once, grades per draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from udfs.block import Block
from udfs.draws import Grades
from udfs.graded import GAINS, GradedLabels, discount, tabulate_dcg, weights_by_rank
from udfs.ragged import Floats, Ints, Ragged

Levels = npt.NDArray[np.uint8]
Number = TypeVar("Number", np.int64, np.float64)

_MOST_LEVELS = 8  # grades above it are not tabulated


class DrawnBlock(Block):
    """The lists of a block with the labels of one draw; its arrays are made when a kernel asks for them."""

    def __init__(self, block: Block, labels: Grades, tables: DrawTables | None = None, draw: int = 0) -> None:
        for each in fields(block):
            if each.name not in ("grade", "labels", "_memo"):
                object.__setattr__(self, each.name, getattr(block, each.name))
        state: dict[str, object] = {"_memo": {}, "_drawn": labels, "_tables": tables, "_draw": draw}
        for name, value in state.items():
            object.__setattr__(self, name, value)

    _drawn: Grades  # one per label of the pool
    _tables: DrawTables | None
    _draw: int

    @cached_property
    def grade(self) -> Floats:
        return np.append(self._by_query.grade, np.nan)[self.row_data["label"].astype(np.int64, copy=False)]

    @cached_property
    def labels(self) -> Floats:
        assert self.pool is not None
        return self._by_query.grade[self.pool.row]

    @cached_property
    def _by_query(self) -> GradedLabels:
        assert self.pool is not None
        return GradedLabels(self.pool.queries, self._drawn.astype(np.float64, copy=False))

    def count_relevant(self, rel: float | None) -> Ints:
        if self._tables is not None and is_tabulated(rel):
            return self._pick(self._tables.count_relevant(rel))
        assert self.pool is not None
        return self._by_query.count_relevant(rel)[self.pool.query]

    def ideal_dcg(self, kind: str, k: int | None) -> Floats:
        if self._tables is not None and self._tables.has_ideal(k):
            return self._pick(self._tables.ideal_dcg(kind, k))
        assert self.pool is not None
        return self._by_query.ideal_dcg(kind, k)[self.pool.query]

    def count_hits(self, k: int | None, rel: float | None) -> Ints:
        if self._tables is not None and is_tabulated(rel):
            return self._pick(self._tables.count_hits(k, rel))
        return super().count_hits(k, rel)

    def find_first_hit(self, rel: float | None) -> Ints:
        if self._tables is not None and is_tabulated(rel):
            return self._pick(self._tables.find_first_hit(rel))
        return super().find_first_hit(rel)

    def dcg(self, kind: str, k: int | None) -> Floats:
        return super().dcg(kind, k) if self._tables is None else self._pick(self._tables.dcg(kind, k))

    def _pick(self, table: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """The values of this draw."""
        values: npt.NDArray[Number] = table[self._draw]
        return values


def draw_blocks(blocks: list[Block], grades: Grades) -> Iterator[list[DrawnBlock]]:
    """These blocks, which share a pool, with the labels of one draw after the other: a row of `grades` each."""
    levels = _find_levels(grades)
    tables = None if levels is None else [DrawTables(block, levels) for block in blocks]
    for draw, labels in enumerate(grades):
        yield [
            DrawnBlock(block, labels, None if tables is None else tables[place], draw)
            for place, block in enumerate(blocks)
        ]


def is_tabulated(rel: float | None) -> bool:
    """Whether documents without a label and those of grade 0 are alike: neither is relevant."""
    return rel is None or rel > 0


class DrawTables:
    """What kernels read of lists and labels, for all draws of small whole grades at once: [draws × lists] each.

    Rows of lists of similar length form rectangles [lists × ranks × draws], whose inner loops run over draws.
    """

    def __init__(self, block: Block, levels: Levels) -> None:
        assert block.pool is not None
        self._block, self._pool, self._levels = block, block.pool, levels
        self._top = int(levels.max(initial=0))
        self._draws = levels.shape[1]
        self._results: dict[object, npt.NDArray[np.generic]] = {}
        self._rectangles: dict[int | None, list[tuple[Ints, Levels]]] = {}

    def count_relevant(self, rel: float | None) -> Ints:
        least = _find_least(rel)

        def compute() -> npt.NDArray[np.generic]:
            if least > self._top:
                return np.zeros((self._block.size, self._draws))
            counts: npt.NDArray[np.int32] = self._at_least[least - 1].take(self._pool.query, axis=0)
            return counts

        return self._get(("relevant", rel), compute, np.int64)

    def count_hits(self, k: int | None, rel: float | None) -> Ints:
        least = _find_least(rel)

        def compute() -> npt.NDArray[np.generic]:
            counts = np.zeros((self._block.size, self._draws), dtype=np.int32)
            for lists, grades in self._rank(k):
                counts[lists] = (grades >= least).sum(axis=1, dtype=np.int32)
            return counts

        return self._get(("hits", k, rel), compute, np.int64)

    def find_first_hit(self, rel: float | None) -> Ints:
        least = _find_least(rel)

        def compute() -> npt.NDArray[np.generic]:
            ranks = np.zeros((self._block.size, self._draws), dtype=np.int32)
            for lists, grades in self._rank(None):
                first = np.zeros((len(lists), self._draws), dtype=np.int32)
                for place in range(grades.shape[1] - 1, -1, -1):
                    np.copyto(first, place + 1, where=grades[:, place] >= least)
                ranks[lists] = first
            return ranks

        return self._get(("first_hit", rel), compute, np.int64)

    def dcg(self, kind: str, k: int | None) -> Floats:
        gains = GAINS[kind](np.arange(self._top + 1, dtype=np.float64))

        def compute() -> npt.NDArray[np.generic]:
            sums = np.zeros((self._block.size, self._draws))
            for lists, grades in self._rank(k):
                weights = weights_by_rank(discount, np.arange(1, grades.shape[1] + 1))
                total = np.zeros((len(lists), self._draws))
                for place, weight in enumerate(weights):  # in order of rank, as the sum of one draw is
                    total += (gains * weight).take(grades[:, place])
                sums[lists] = total
            return sums

        return self._get(("dcg", kind, k), compute, np.float64)

    def has_ideal(self, k: int | None) -> bool:
        return tabulate_dcg("linear", k, self._top) is not None

    def ideal_dcg(self, kind: str, k: int | None) -> Floats:
        table = tabulate_dcg(kind, k, self._top)
        assert table is not None and k is not None

        def compute() -> npt.NDArray[np.generic]:
            key, above = np.zeros(self._at_least.shape[1:], dtype=np.int64), 0
            for counts in self._at_least[::-1]:  # the highest grade first
                top = np.minimum(counts, k)
                key, above = key * (k + 1) + (top - above), top
            return table.take(key).take(self._pool.query, axis=0)

        return self._get(("ideal_dcg", kind, k), compute, np.float64)

    @cached_property
    def _at_least(self) -> npt.NDArray[np.int32]:
        """Per grade from 1 on, query and draw, the number of labels of at least that grade."""
        counts = np.zeros((self._top, self._pool.queries.size, self._draws), dtype=np.int32)
        for queries, grades in _build_rectangles(self._pool.queries, self._levels, None, None):
            for grade in range(1, self._top + 1):
                counts[grade - 1, queries] = (grades >= grade).sum(axis=1, dtype=np.int32)
        return counts

    def _rank(self, k: int | None) -> list[tuple[Ints, Levels]]:
        """The grades of the top k of lists of similar length, [lists × ranks × draws]; 0 where there is none."""
        if k not in self._rectangles:
            labels = self._block.row_data["label"].astype(np.int64, copy=False)
            self._rectangles[k] = list(_build_rectangles(self._block.ranked, self._levels, labels, k))
        return self._rectangles[k]

    def _get(
        self, key: object, compute: Callable[[], npt.NDArray[np.generic]], kind: type[Number]
    ) -> npt.NDArray[Number]:
        """The result under `key`, [draws × lists], computed as [lists × draws] at its first use."""
        if key not in self._results:
            self._results[key] = np.ascontiguousarray(compute().T, dtype=kind)
        return self._results[key]  # type: ignore[return-value]


def _find_levels(grades: Grades) -> Levels | None:
    """The grades as small whole numbers, [labels × draws], and a row of zeros for no label; None where they are not."""
    if not grades.size or not (grades.min() >= 0 and grades.max() <= _MOST_LEVELS):
        return None
    whole = grades.astype(np.uint8)
    if not np.array_equal(whole, grades):
        return None
    levels = np.zeros((grades.shape[1] + 1, len(grades)), dtype=np.uint8)
    levels[:-1] = whole.T
    return levels


def _build_rectangles(
    lists: Ragged, levels: Levels, labels: Ints | None, most: int | None
) -> Iterator[tuple[Ints, Levels]]:
    """The grades of lists of similar length, [lists × rows × draws]; `labels` has the label of each row, or −1."""
    of_row = None if labels is None else np.append(labels, -1)
    for some, rows in lists.rectangles(most):
        yield some, levels.take(rows if of_row is None else of_row[rows], axis=0, mode="wrap")


def _find_least(rel: float | None) -> int:
    """The smallest whole grade that is relevant."""
    return 1 if rel is None else math.ceil(rel)
