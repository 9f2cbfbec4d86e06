"""Draw the relevance of every document of a pool, and grade it by its lift over the pool's mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from udfs.posterior.factors import Codes, FactorPlan
from udfs.posterior.fit import POSTERIOR, STRENGTH_EDGES, DrawSet, Prior, sum_effects
from udfs.posterior.gamma import Singles, draw_steps, transform_steps
from udfs.ragged import Floats, Ragged
from udfs.statistics.resample import Hashes

CUTS = (1.0, 1.5, 2.5)  # lifts over the pool's mean that earn grades 1, 2 and 3
_ROWS = 1 << 10  # documents of a block, so that its arrays fit the CPU cache
_GRID = 2.0**24  # sums of multiples of 1/_GRID are exact below 2**29


@dataclass(frozen=True)
class PoolEvidence:
    """The documents of the pools of many queries: what the posterior of each is made of."""

    queries: Ragged
    query_hash: Hashes  # per query
    doc_hash: Hashes  # per document, like all that follows
    clicks: Floats  # x
    examinations: Floats  # E
    depth: Floats  # a = Σ N·θ·ln k / E, 0 where E is
    rate: Floats  # m_q
    codes: Codes  # [documents × factors]
    floor: Floats  # the least grade, by purchases and carts
    fixed: Floats  # the grade by a person, NaN where there is none


@dataclass(frozen=True)
class PosteriorSummary:
    """The posterior of every document's relevance, with the uncertainty of the prior."""

    mean: Floats
    sd: Floats
    base: Floats  # per query: the mean over its pool

    def find_quantiles(self, level: float) -> Floats:
        """Quantiles of the Gamma with the posterior's mean and standard deviation."""
        shape = (self.mean / self.sd) ** 2
        return np.asarray(special.gammaincinv(shape, level) * self.mean / shape)


def draw_grades(prior: Prior, name: str, pool: PoolEvidence, cuts: tuple[float, float, float] = CUTS) -> Singles:
    """Grades [draws × documents] of a set of draws.

    λ ~ Gamma(x + s, rate E·e^(δ·a) + s/μ) with μ = m_q·exp(Σ f); the base is the mean of λ over the query's pool, and
    the grade the number of cuts that λ/base reaches, at least `floor`, or `fixed`.
    """
    draw_set = prior.select_set(name)
    grades = np.empty((draw_set.size, pool.queries.rows), dtype=np.float32)
    tables = _build_tables(prior, draw_set)
    for part in pool.queries.slices(_ROWS):
        rows = slice(int(pool.queries.offsets[part.start]), int(pool.queries.offsets[part.stop]))
        if rows.stop > rows.start:
            grades[:, rows] = _draw_block(prior, draw_set, tables, pool, part, rows, cuts).T
    return grades


def describe_posterior(prior: Prior, pool: PoolEvidence) -> PosteriorSummary:
    """Mean and standard deviation of λ over the draws of the prior, and the base of every query."""
    draw_set = prior.select_set(POSTERIOR)
    tables = _build_tables(prior, draw_set)
    mean, sd = np.empty((2, pool.queries.rows))
    for start in range(0, pool.queries.rows, _ROWS):
        rows = slice(start, start + _ROWS)
        shape, scale = _find_gamma(prior, draw_set, tables, pool, rows)
        values = (shape * scale).astype(np.float64)
        mean[rows] = values.mean(axis=1) * pool.rate[rows]
        variance = (shape * scale**2).astype(np.float64).mean(axis=1) + values.var(axis=1)
        sd[rows] = np.sqrt(variance) * pool.rate[rows]
    lengths = np.maximum(pool.queries.lengths, 1)
    relative = np.rint(mean / pool.rate * _GRID) / _GRID
    rate = np.zeros(pool.queries.size)
    rate[pool.queries.owner] = pool.rate
    return PosteriorSummary(mean=mean, sd=sd, base=pool.queries.sums(relative) / lengths * rate)


def _draw_block(
    prior: Prior,
    draw_set: DrawSet,
    tables: tuple[list[Singles], list[Singles]],
    pool: PoolEvidence,
    part: slice,
    rows: slice,
    cuts: tuple[float, float, float],
) -> Singles:
    """Grades [documents × draws] of the queries of a slice."""
    lengths = pool.queries.lengths[part]
    shape, scale = _find_gamma(prior, draw_set, tables, pool, rows)
    steps = draw_steps(np.repeat(pool.query_hash[part], lengths), pool.doc_hash[rows], draw_set.size, prior.seed)
    # Relative to m_q, and on a grid, so that the pool's sum is exact in any order.
    relative = (transform_steps(steps, shape) * scale).astype(np.float64)
    relative *= _GRID
    np.rint(relative, out=relative)
    filled = lengths > 0
    starts = (pool.queries.offsets[part] - rows.start)[filled]
    share = lengths[filled, None] / np.add.reduceat(relative, starts, axis=0)
    relative *= np.repeat(share, lengths[filled], axis=0)
    grade = (relative >= cuts[0]).view(np.int8)
    for cut in cuts[1:]:
        grade += (relative >= cut).view(np.int8)
    floor, fixed = pool.floor[rows, None], pool.fixed[rows, None]
    values = np.maximum(grade, floor, dtype=np.float32)
    return values if np.isnan(fixed).all() else np.where(np.isnan(fixed), values, fixed.astype(np.float32))


def _build_tables(prior: Prior, draw_set: DrawSet) -> tuple[list[Singles], list[Singles]]:
    """exp(Σ f) by group of factors, [joint levels × draws], for shown documents and for the others."""
    offsets = prior.offsets

    def build(effects: Floats) -> list[Singles]:
        sums = [sum_effects(group, effects, offsets) for group in prior.plan.groups]
        return [np.ascontiguousarray(np.exp(each).astype(np.float32).T) for each in sums]

    seen = build(draw_set.effects)
    return seen, seen if draw_set.unseen_effects is draw_set.effects else build(draw_set.unseen_effects)


def _find_gamma(
    prior: Prior, draw_set: DrawSet, tables: tuple[list[Singles], list[Singles]], pool: PoolEvidence, rows: slice
) -> tuple[Singles, Singles]:
    """Shape and scale of λ/m_q, [documents × draws]: x + s, and 1/(E·m_q·e^(δ·a) + s/exp(Σ f))."""
    codes, expected = pool.codes[rows], pool.examinations[rows] * pool.rate[rows]
    shown = expected > 0
    product = _multiply_tables(prior.plan, tables[0], codes)
    if tables[1] is not tables[0] and not shown.all():
        product[~shown] = _multiply_tables(prior.plan, tables[1], codes[~shown])
    strength = _select_strength(draw_set.strength.astype(np.float32), product)
    rate = strength / product
    seen = expected[shown, None].astype(np.float32)
    if draw_set.exponent.any():
        seen = seen * _raise_e(pool.depth[rows][shown, None].astype(np.float32) * draw_set.exponent.astype(np.float32))
    rate[shown] += seen
    shape = pool.clicks[rows, None].astype(np.float32) + strength
    return shape, np.float32(1) / rate


def _select_strength(strength: Singles, product: Singles) -> Singles:
    """The strength of every document and draw, by the class of its exp(Σ f)."""
    level = np.zeros(product.shape, dtype=np.int8)
    for edge in STRENGTH_EDGES:
        level += (product >= np.float32(edge)).view(np.int8)
    draws, classes = strength.shape
    selected: Singles = strength.ravel().take(level + np.arange(draws) * classes)
    return selected


def _raise_e(power: Singles) -> Singles:
    """e^power within 0.1 % for |power| up to 1, by exactly rounded operations: (1 + y + y²/2)^16 with y = power/16."""
    y = power * np.float32(1 / 16)
    result: Singles = np.float32(1) + y + np.float32(0.5) * y * y
    for _ in range(4):
        result *= result
    return result


def _multiply_tables(plan: FactorPlan, tables: list[Singles], codes: Codes) -> Singles:
    product = np.take(tables[0], plan.groups[0].find_states(codes), axis=0)
    for group, table in zip(plan.groups[1:], tables[1:], strict=True):
        product *= np.take(table, group.find_states(codes), axis=0)
    return product
