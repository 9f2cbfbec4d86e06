"""Factors of the prior: bins of a document's rank in every system, of pairs of systems, and of outside opinions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from udfs.ragged import Bools, Ints

Codes = npt.NDArray[np.int8]

ABSENT, UNKNOWN = 0, -1  # codes of ranks: not in the list; the system never served the query
FINE = ("1", "2–3", "4–6", "7–10", "11–20", "beyond 20", "absent", "unknown")
COARSE = ("1–3", "4–10", "beyond 10")
OPINION_LEVELS = 24  # codes of an opinion: 0 where there is none, then up to 23 categories or quantiles
KNOWN, _OPINIONS = ("new", "known"), ("none", *(str(code) for code in range(1, OPINION_LEVELS)))
_FINE_EDGES, _COARSE_EDGES = np.array([2, 4, 7, 11, 21]), np.array([4, 11])
_TOP = 10


@dataclass(frozen=True)
class Factor:
    """One factor: its name, the systems or opinion it is made of, and the names of its levels."""

    name: str
    kind: str  # main, opinion, known (a compared system or an opinion by known) or pair
    sources: tuple[str, ...]
    levels: tuple[str, ...]


@dataclass(frozen=True)
class FactorGroup:
    """Factors whose levels follow from a few columns, so that their effects add up in one table of joint levels."""

    columns: tuple[int, ...]  # that determine the joint level
    sizes: tuple[int, ...]  # numbers of their levels
    members: tuple[int, ...]  # the factors
    codes: Ints  # [member, joint level]: the level of each factor

    @property
    def size(self) -> int:
        """The number of joint levels."""
        return int(self.codes.shape[1])

    def find_states(self, codes: Codes) -> Ints:
        """The joint level of every row of codes."""
        state = codes[:, self.columns[0]].astype(np.int64)
        for column, size in zip(self.columns[1:], self.sizes[1:], strict=True):
            state = state * size + codes[:, column]
        return state


@dataclass(frozen=True)
class FactorPlan:
    """The systems and opinions the prior is made of.

    Ranks of `serving` systems are the usual positions of documents in the log, since these decided what was shown;
    ranks of `compared` systems, which did not serve, are those of their rankings.
    """

    serving: tuple[str, ...]  # largest traffic first
    compared: tuple[str, ...]
    opinions: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """The columns of ranks."""
        return (*self.serving, *self.compared)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """All factors, in the order of the columns of `bin_factors`."""
        bins = {name: Factor(name=name, kind="main", sources=(name,), levels=FINE) for name in self.systems}
        by_known = [
            Factor(name=f"{name} × known", kind="known", sources=(name,), levels=cross_levels(FINE, KNOWN))
            for name in self.compared
        ]
        pairs = [
            Factor(name=f"{a} × {b}", kind="pair", sources=(a, b), levels=cross_levels(COARSE, COARSE))
            for a, b in itertools.combinations(self.systems, 2)
        ]
        opinions = [Factor(name=name, kind="opinion", sources=(name,), levels=_OPINIONS) for name in self.opinions]
        opinions_by_known = [
            Factor(name=f"{name} × known", kind="known", sources=(name,), levels=cross_levels(_OPINIONS, KNOWN))
            for name in self.opinions
        ]
        return (*bins.values(), *opinions, *by_known, *opinions_by_known, *pairs)

    @cached_property
    def groups(self) -> tuple[FactorGroup, ...]:
        """All factors in groups with few joint levels, in the order in which they are fitted."""
        numbers = {factor.name: number for number, factor in enumerate(self.factors)}
        groups = []
        for start in range(0, len(self.serving), 3):
            columns = [numbers[name] for name in self.serving[start : start + 3]]
            groups.append(_group_product(columns, [len(FINE)] * len(columns)))
        for name, levels in (*((n, FINE) for n in self.compared), *((n, _OPINIONS) for n in self.opinions)):
            states = np.arange(2 * len(levels))
            own, by_known = numbers[name], numbers[f"{name} × known"]
            groups.append(FactorGroup((by_known,), (len(states),), (own, by_known), np.stack((states // 2, states))))
        return (*groups, *self._group_pairs(numbers))

    def _group_pairs(self, numbers: dict[str, int]) -> list[FactorGroup]:
        """Pairs of systems in groups of at most six systems: three disjoint pairs determine the bins of all."""
        blocks = [tuple(range(start, min(start + 3, len(self.systems)))) for start in range(0, len(self.systems), 3)]
        unions = [a + b for a, b in itertools.combinations(blocks, 2)] or blocks
        groups, grouped = [], set[tuple[int, int]]()
        for union in unions:
            pairs = [pair for pair in itertools.combinations(union, 2) if pair not in grouped]
            grouped.update(pairs)
            if pairs:
                groups.append(self._group_union(union, pairs, numbers))
        return groups

    def _group_union(
        self, union: tuple[int, ...], pairs: list[tuple[int, int]], numbers: dict[str, int]
    ) -> FactorGroup:
        def find_column(pair: tuple[int, int]) -> int:
            return numbers[f"{self.systems[pair[0]]} × {self.systems[pair[1]]}"]

        disjoint = list(zip(union[::2], union[1::2], strict=False))
        if len(union) % 2:
            disjoint.append((union[-2], union[-1]))
        size, width = len(COARSE) ** 2, len(COARSE)
        states = np.arange(size ** len(disjoint))
        bins: dict[int, Ints] = {}
        for place, (first, second) in enumerate(disjoint):
            code = states // size ** (len(disjoint) - 1 - place) % size
            bins |= {first: code // width, second: code % width}
        return FactorGroup(
            columns=tuple(find_column(pair) for pair in disjoint),
            sizes=(size,) * len(disjoint),
            members=tuple(find_column(pair) for pair in pairs),
            codes=np.stack([bins[first] * width + bins[second] for first, second in pairs]),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the factors."""
        return tuple(factor.name for factor in self.factors)

    def count_levels(self) -> Ints:
        """The number of levels of every factor."""
        return np.array([len(factor.levels) for factor in self.factors], dtype=np.int64)

    def select(self, *, kinds: tuple[str, ...] | None = None, without: tuple[str, ...] = ()) -> Bools:
        """Which factors are of some kinds and are made of none of the systems in `without`."""
        return np.array(
            [(kinds is None or f.kind in kinds) and not set(f.sources) & set(without) for f in self.factors], dtype=bool
        )


def bin_factors(plan: FactorPlan, ranks: npt.NDArray[np.integer], opinions: npt.NDArray[np.integer]) -> Codes:
    """Codes [documents × factors] from ranks [documents × systems] and codes of opinions [documents × opinions].

    A rank is at least 1, or `ABSENT`, or `UNKNOWN`. A document is known where it is in the top ten of a serving system
    other than the one with the least traffic, or of the only one.
    """
    fine, coarse = _bin_fine(ranks), _bin_coarse(ranks)
    arms = ranks[:, : max(len(plan.serving) - 1, 1)] if plan.serving else ranks[:, :0]
    is_known = ((arms >= 1) & (arms <= _TOP)).any(axis=1).astype(np.int8)
    codes = [opinions[:, place].astype(np.int8) for place in range(len(plan.opinions))]
    bins = [fine[:, place] for place in range(len(plan.systems))]
    by_known = [each * np.int8(2) + is_known for each in (*bins[len(plan.serving) :], *codes)]
    pairs = [
        coarse[:, first] * np.int8(len(COARSE)) + coarse[:, second]
        for first, second in itertools.combinations(range(len(plan.systems)), 2)
    ]
    columns = [*bins, *codes, *by_known, *pairs]
    return np.stack(columns, axis=1) if columns else np.zeros((len(ranks), 0), dtype=np.int8)


def _bin_fine(ranks: npt.NDArray[np.integer]) -> Codes:
    bins = np.digitize(ranks, _FINE_EDGES)
    return np.where(ranks == UNKNOWN, 7, np.where(ranks == ABSENT, 6, bins)).astype(np.int8)


def _bin_coarse(ranks: npt.NDArray[np.integer]) -> Codes:
    return np.where(ranks < 1, 2, np.digitize(ranks, _COARSE_EDGES)).astype(np.int8)


def _group_product(columns: list[int], sizes: list[int]) -> FactorGroup:
    """A group whose joint levels are all combinations of its factors' levels."""
    codes = np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes))
    return FactorGroup(columns=tuple(columns), sizes=tuple(sizes), members=tuple(columns), codes=codes)


def cross_levels(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """The names of all combinations of two factors' levels."""
    return tuple(f"{a} × {b}" for a in first for b in second)
