"""Fit the prior: λ = m_q · exp(Σ f) · Gamma(s, s), from counts summed by query bucket and bins.

Effects f by iterative proportional scaling, shrunk by pseudo-counts; strength s by moments. The uncertainty of both by
resampling query buckets. Sums are taken on a grid (`round_to_grid`), so that they are exact: the same prior to the
last bit for any order and any grouping of the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from udfs.posterior.factors import Codes, FactorGroup, FactorPlan
from udfs.posterior.gamma import draw_normals
from udfs.ragged import Bools, Floats, Ints
from udfs.statistics.resample import Hashes, draw_poisson_weights

BUCKETS = 100  # of queries, by hash
POSTERIOR, MAIN_EFFECTS, OWN_REMOVED = "posterior", "main_effects", "own_factor_removed"
GRID = 2.0**20  # sums of multiples of 1/GRID are exact below 2**33
MOMENTS = ("weight", "ratio", "square", "noise", "pairs")  # Σ E, Σ E·x/e, Σ E·(x/e)², Σ E/e, number of pairs
_ENOUGH = 5.0  # examinations that a pair needs to count for the strength
# Classes of exp(Σ f): a document that is expected to be bad varies more, relative to its mean, than a good one.
STRENGTH_EDGES = (0.5, 1.0, 2.0)
_FULL = 4.0  # expected clicks at which a pair counts half
_FEWEST = 30  # pairs that the strength needs
_STRENGTHS, _DEFAULT_STRENGTH = (0.3, 1000.0), 5.0
# Least standard deviation of the curve's exponent: a curve is never a power to the last digit.
EXPONENT_FLOOR = 0.05
# Clicks, observed and expected, that pull the effect of a level to 0; interactions are many, and mostly small.
_PSEUDO, _INTERACTION_PSEUDO = 4.0, 200.0
_ROUNDS, _DRAW_ROUNDS, _MAIN_DRAWS = 60, 10, 10
_Z_95 = 1.959963984540054


@dataclass(frozen=True)
class PriorTable:
    """Sums over pairs by bucket of the query and codes of the factors; a group may have several rows.

    With e = E·m_q and the weight w = 4/(4 + e) of a pair: `clicks` = Σ w·x, `expected` = Σ w·e, `depth` = Σ w·e·a;
    `moments` (columns `MOMENTS`, with w·E in the place of E) are sums over the pairs with E > 5. The weight is that of
    overdispersed counts: beyond a few clicks, one more says little about what documents of this kind are worth.
    Every term is rounded by `round_to_grid` before it is added.
    """

    bucket: Ints
    codes: Codes  # [rows × factors]
    clicks: Floats
    expected: Floats
    depth: Floats
    moments: Floats  # [rows × len(MOMENTS)]


@dataclass(frozen=True)
class DrawSet:
    """Draws of the prior: one row per draw.

    Draw d of every set uses the same resampled buckets, the same δ and the same random numbers, so that differences
    between sets have little noise.
    """

    name: str
    effects: Floats  # [draws × levels of all factors]
    unseen_effects: Floats  # those of documents with E = 0
    strength: Floats  # [draws × classes]: by class of exp(Σ f), between STRENGTH_EDGES
    exponent: Floats  # δ: the curve is θ_k·k^δ

    @property
    def size(self) -> int:
        return len(self.strength)


@dataclass(frozen=True)
class Prior:
    """The fitted prior: point effects, strength, their draws, and the evidence of every level.

    Arrays over levels hold the levels of all factors one after another, as `offsets` says.
    """

    plan: FactorPlan
    effects: Floats
    low: Floats  # 95 % confidence interval of the effects
    high: Floats
    clicks: Floats
    expected: Floats
    strength: Floats  # by class of exp(Σ f)
    seed: int
    sets: tuple[DrawSet, ...] = field(repr=False)

    @property
    def offsets(self) -> Ints:
        return find_offsets(self.plan)

    @property
    def draw_sets(self) -> tuple[tuple[str, int], ...]:
        """The sets' names and numbers of draws, in order."""
        return tuple((each.name, each.size) for each in self.sets)

    def select_set(self, name: str) -> DrawSet:
        return next(each for each in self.sets if each.name == name)


def find_offsets(plan: FactorPlan) -> Ints:
    """Where the levels of every factor begin, and the number of all levels."""
    return np.concatenate(([0], np.cumsum(plan.count_levels())))


def sum_effects(group: FactorGroup, effects: Floats, offsets: Ints) -> Floats:
    """Σ f of every joint level of a group; `effects` may have more axes in front."""
    parts = [effects[..., offsets[m] + codes] for m, codes in zip(group.members, group.codes, strict=True)]
    return np.asarray(np.sum(parts, axis=0))


def round_to_grid(values: npt.ArrayLike) -> Floats:
    """Values rounded to multiples of 1/GRID, whose sums are exact in any order."""
    rounded: Floats = np.rint(np.asarray(values, dtype=np.float64) * GRID) / GRID
    return rounded


def tabulate_pairs(
    bucket: Ints, codes: Codes, clicks: Floats, examinations: Floats, depth: Floats, rate: Floats
) -> PriorTable:
    """The table of some pairs; `depth` is a, `rate` is m_q. Pairs that nobody was shown say nothing: left out."""
    shown = examinations > 0
    bucket, codes, x, e = bucket[shown], codes[shown], clicks[shown], examinations[shown]
    expected = e * rate[shown]
    share = _FULL / (_FULL + expected)
    weight, ratio = e * share * (e > _ENOUGH), x / expected
    moments = np.stack([weight, weight * ratio, weight * ratio**2, weight / expected, weight > 0], axis=1)
    rows = PriorTable(
        bucket=bucket,
        codes=codes,
        clicks=round_to_grid(x * share),
        expected=round_to_grid(expected * share),
        depth=round_to_grid(expected * share * depth[shown]),
        moments=round_to_grid(moments),
    )
    return merge_tables([rows])


def merge_tables(tables: Sequence[PriorTable]) -> PriorTable:
    """One table with one row per bucket and codes, in their order."""
    bucket, codes = (np.concatenate([getattr(table, name) for table in tables]) for name in ("bucket", "codes"))
    group, first = _group_rows(np.concatenate((bucket[:, None], codes), axis=1))

    def add(values: Floats) -> Floats:
        return np.asarray(np.bincount(group, values, len(first)), dtype=np.float64)

    names = ("clicks", "expected", "depth", "moments")
    clicks, expected, depth, moments = (np.concatenate([getattr(table, name) for table in tables]) for name in names)
    return PriorTable(
        bucket=bucket[first],
        codes=codes[first],
        clicks=add(clicks),
        expected=add(expected),
        depth=add(depth),
        moments=np.stack([add(column) for column in moments.T], axis=1),
    )


def fit_prior(
    table: PriorTable,
    plan: FactorPlan,
    *,
    draws: int = 30,
    seed: int = 0,
    exponent_sd: float = 0.0,
    not_vouched: Sequence[str] = (),
    other_days: Sequence[str] = (),
) -> Prior:
    """The prior with its sets of draws.

    `exponent_sd` is the standard deviation of the exponent of the curve, at least `EXPONENT_FLOOR`; `not_vouched` are
    the compared systems that may have learned from clicks: with any, a set without their factors is drawn. Those of
    them in `other_days` learned from clicks outside this log, so that their ranks tell nothing of its noise: their
    factors are left out only for documents that nobody was shown.
    """
    cells = _Cells(merge_tables([table]), plan)
    weights = draw_poisson_weights(np.arange(BUCKETS, dtype=np.uint64), draws, seed).T.astype(np.float64)
    exponent = max(exponent_sd, EXPONENT_FLOOR) * draw_normals(draws, seed)
    every = plan.select()
    point = cells.fit(every)
    posterior = cells.draw(POSTERIOR, every, point, weights, exponent)
    main = plan.select(kinds=("main", "opinion"))
    few = slice(0, min(_MAIN_DRAWS, draws))
    sets = [posterior, cells.draw(MAIN_EFFECTS, main, cells.fit(main), weights[few], exponent[few])]
    without = tuple(name for name in not_vouched if name in plan.compared)
    if without:
        same_log = tuple(name for name in without if name not in other_days)

        def remove(systems: tuple[str, ...]) -> DrawSet:
            mask = plan.select(without=systems)
            return cells.draw(OWN_REMOVED, mask, cells.fit(mask), weights, exponent) if systems else posterior

        unseen = remove(without)
        shown = unseen if same_log == without else remove(same_log)
        sets.append(replace(shown, name=OWN_REMOVED, unseen_effects=unseen.effects))
    spread = posterior.effects.std(axis=0, ddof=1) if draws > 1 else np.zeros_like(point)
    return Prior(
        plan=plan,
        effects=point,
        low=point - _Z_95 * spread,
        high=point + _Z_95 * spread,
        clicks=cells.sum_by_level(cells.clicks),
        expected=cells.sum_by_level(cells.expected),
        strength=cells.estimate_strength(point),
        seed=seed,
        sets=tuple(sets),
    )


class _Cells:
    """A merged table, ready for repeated fits: rows by joint codes, and their sums under weights of the buckets."""

    def __init__(self, table: PriorTable, plan: FactorPlan) -> None:
        self.offsets = find_offsets(plan)
        self.pseudo = [_INTERACTION_PSEUDO if f.kind in ("pair", "known") else _PSEUDO for f in plan.factors]
        self.bucket = table.bucket
        self.joint, first = _group_rows(table.codes)
        self.size = len(first)
        self.groups = [(group, group.find_states(table.codes[first])) for group in plan.groups]
        self.sums = (table.clicks, table.expected, table.depth, *table.moments.T.copy())
        self.clicks, self.expected, *_ = self.add_buckets(np.ones(BUCKETS))

    def add_buckets(self, weights: Floats) -> list[Floats]:
        """Clicks, expected clicks, depth and moments by joint codes, with every bucket as often as its weight."""
        weight = weights[self.bucket]
        return [np.bincount(self.joint, weight * column, self.size).astype(np.float64) for column in self.sums]

    def sum_by_level(self, values: Floats) -> Floats:
        total = np.zeros(self.offsets[-1])
        for group, states in self.groups:
            margin = np.bincount(states, values, group.size)
            for member, codes in zip(group.members, group.codes, strict=True):
                total[self.slice(member)] = np.bincount(codes, margin, self.count(member))
        return total

    def slice(self, factor: int) -> slice:
        return slice(int(self.offsets[factor]), int(self.offsets[factor + 1]))

    def count(self, factor: int) -> int:
        return int(self.offsets[factor + 1] - self.offsets[factor])

    def add_effects(self, effects: Floats) -> Floats:
        """Σ f of every joint code."""
        total = np.zeros(self.size)
        for group, states in self.groups:
            total += sum_effects(group, effects, self.offsets)[states]
        return total

    def fit(self, mask: Bools) -> Floats:
        """The point effects of the factors in the mask; 0 for the others."""
        return self.scale(mask, np.zeros(self.offsets[-1]), self.clicks, self.expected, _ROUNDS)

    def scale(self, mask: Bools, start: Floats, clicks: Floats, expected: Floats, rounds: int) -> Floats:
        """Iterative proportional scaling (Deming and Stephan 1940): factor by factor, level by level,

        exp(f) = (clicks + c) / (clicks expected without this factor + c), the posterior mode under Gamma(c, c).
        """
        used = np.flatnonzero((clicks > 0) | (expected > 0))
        fitted = (expected * np.exp(self.add_effects(start)))[used]
        clicks = clicks[used]
        groups = []
        for group, states in self.groups:
            members = [(m, codes) for m, codes in zip(group.members, group.codes, strict=True) if mask[m]]
            if members:
                margin = np.bincount(states[used], clicks, group.size)
                totals = [np.bincount(codes, margin, self.count(m)) + self.pseudo[m] for m, codes in members]
                groups.append((group.size, states[used], members, totals))
        product = np.exp(start)
        for _ in range(rounds):
            for size, states, members, totals in groups:
                margin = np.bincount(states, fitted, size)
                factor = np.ones(size)
                for (member, codes), total in zip(members, totals, strict=True):
                    part = self.slice(member)
                    without = np.bincount(codes, margin * factor, len(total)) / product[part]
                    effect = total / (without + self.pseudo[member])
                    factor *= (effect / product[part])[codes]
                    product[part] = effect
                fitted *= factor[states]
        return np.log(product)

    def estimate_strength(self, effects: Floats, sums: Sequence[Floats] | None = None, exponent: float = 0.0) -> Floats:
        """s = 1 / (variance of x/(E·μ) beyond Poisson noise), by moments over pairs with E > 5, by class of exp(Σ f).

        A class with few pairs is pulled to the variance of all: as if 30 more pairs had that.
        """
        _, expected, depth, weight, ratio, square, noise, pairs = sums or self.add_buckets(np.ones(BUCKETS))
        if pairs.sum() < _FEWEST:
            return np.full(len(STRENGTH_EDGES) + 1, _DEFAULT_STRENGTH)
        total = self.add_effects(effects)
        level = np.exp(total + exponent * _divide(depth, expected))
        excess = square / level**2 - 2 * ratio / level + weight - noise / level
        group = np.digitize(np.exp(total), STRENGTH_EDGES)
        classes = len(STRENGTH_EDGES) + 1
        count, above, below = (np.bincount(group, each, classes).astype(np.float64) for each in (pairs, excess, weight))
        overall = excess.sum() / weight.sum()
        variance = (count * _divide(above, below) + _FEWEST * overall) / (count + _FEWEST)
        return np.asarray(np.clip(1.0 / np.maximum(variance, 1e-9), *_STRENGTHS))

    def draw(self, name: str, mask: Bools, point: Floats, weights: Floats, exponent: Floats) -> DrawSet:
        """Refit from the point effects with resampled buckets and a drawn curve."""
        effects, strength = [], []
        for weight, delta in zip(weights, exponent, strict=True):
            sums = self.add_buckets(weight)
            clicks, expected, depth = sums[:3]
            shifted = expected * np.exp(delta * _divide(depth, expected))
            effects.append(self.scale(mask, point, clicks, shifted, _DRAW_ROUNDS))
            strength.append(self.estimate_strength(effects[-1], sums, float(delta)))
        stacked = np.array(effects)
        return DrawSet(name, stacked, stacked, strength=np.array(strength), exponent=exponent)


def _divide(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _group_rows(rows: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Per row, the number of its group of equal rows, in ascending order; and a row of every group."""
    key, size = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        levels = int(column.max(initial=0)) + 1
        if size * levels > 2**62:
            _, key = np.unique(key, return_inverse=True)
            size = int(key.max(initial=0)) + 1
        key, size = key * levels + column, size * levels
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return group, first


def hash_bucket(query_hash: Hashes) -> Ints:
    """The bucket of every query."""
    return (query_hash % np.uint64(BUCKETS)).astype(np.int64)
