"""The posterior: bins, the prior, random numbers and drawn grades."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from udfs.posterior.draw import CUTS, PoolEvidence, describe_posterior, draw_grades
from udfs.posterior.factors import ABSENT, FINE, UNKNOWN, FactorPlan, bin_factors
from udfs.posterior.fit import (
    BUCKETS,
    EXPONENT_FLOOR,
    MAIN_EFFECTS,
    OWN_REMOVED,
    POSTERIOR,
    STRENGTH_EDGES,
    Prior,
    PriorTable,
    fit_prior,
    hash_bucket,
    merge_tables,
    tabulate_pairs,
)
from udfs.posterior.gamma import draw_normals, draw_steps, transform_steps
from udfs.ragged import Floats, Ragged
from udfs.statistics.resample import draw_poisson_weights

PLAN = FactorPlan(("production", "older"), ("candidate",))
FEW = 4.0  # expected clicks at which a pair counts half
PSEUDO, INTERACTION_PSEUDO = 4.0, 200.0  # clicks, observed and expected, that pull every level to 0


def draw_pool(queries: int = 60, documents: int = 12, seed: int = 1) -> tuple[PoolEvidence, npt.NDArray[np.int64]]:
    """A dense pool: half of the documents shown, ranks that follow relevance, and the ranks."""
    random = np.random.default_rng(seed)
    relevance = random.gamma(1.0, 1.0, (queries, documents))
    ranks = [np.argsort(np.argsort(-relevance - random.gamma(1.0, 1.0, relevance.shape), axis=1)) + 1 for _ in range(3)]
    ranks[0] = np.where(ranks[0] > 6, ABSENT, ranks[0])
    ranks[1] = np.where(np.arange(queries)[:, None] % 5 == 0, UNKNOWN, np.where(ranks[1] > 6, ABSENT, ranks[1]))
    examinations = np.where((ranks[0] > 0) | (ranks[1] > 0), random.gamma(2.0, 40.0, relevance.shape), 0.0)
    clicks = random.poisson(examinations * 0.1 * relevance).astype(np.float64)
    rate = (clicks.sum(1, keepdims=True) + 20) / (examinations.sum(1, keepdims=True) + 200)
    flat = np.stack([each.ravel() for each in ranks], axis=1)
    size = relevance.size
    pool = PoolEvidence(
        queries=Ragged.of_lengths(np.full(queries, documents)),
        query_hash=random.integers(0, 2**63, queries).astype(np.uint64),
        doc_hash=random.integers(0, 2**63, size).astype(np.uint64),
        clicks=clicks.ravel(),
        examinations=examinations.ravel(),
        depth=np.where(examinations > 0, random.uniform(0, 2, relevance.shape), 0.0).ravel(),
        rate=np.broadcast_to(rate, relevance.shape).ravel(),
        codes=bin_factors(PLAN, flat, np.zeros((size, 0), dtype=np.int64)),
        floor=np.zeros(size),
        fixed=np.full(size, np.nan),
    )
    return pool, flat


def tabulate(pool: PoolEvidence, rows: npt.NDArray[np.int64] | slice = slice(None)) -> PriorTable:
    bucket = hash_bucket(pool.query_hash)[pool.queries.owner]
    columns = (bucket, pool.codes, pool.clicks, pool.examinations, pool.depth, pool.rate)
    return tabulate_pairs(*(column[rows] for column in columns))  # type: ignore[arg-type]


def fit(pool: PoolEvidence, **options: object) -> Prior:
    return fit_prior(tabulate(pool), PLAN, **{"draws": 8, "seed": 3} | options)  # type: ignore[arg-type]


def test_a_rank_falls_into_its_bin() -> None:
    ranks = [1, 2, 3, 4, 6, 7, 10, 11, 20, 21, 1000, ABSENT, UNKNOWN]
    codes = bin_factors(FactorPlan(("one",), ()), np.array(ranks)[:, None], np.zeros((len(ranks), 0), dtype=int))
    names = [FINE[code] for code in codes[:, 0]]
    assert names == [
        "1", "2–3", "2–3", "4–6", "4–6", "7–10", "7–10", "11–20", "11–20", "beyond 20", "beyond 20", "absent", "unknown"
    ]  # fmt: skip


def test_pairs_known_documents_and_opinions_have_their_levels() -> None:
    plan = FactorPlan(("production", "trial"), ("candidate",), ("llm",))
    ranks = np.array([[3, 4, 1], [10, 11, 5], [11, 1, 2], [ABSENT, UNKNOWN, 30]])
    codes = bin_factors(plan, ranks, np.array([[0], [1], [5], [23]]))
    levels = [
        {factor.name: factor.levels[code] for factor, code in zip(plan.factors, row, strict=True)} for row in codes
    ]
    pairs = [row["production × trial"] for row in levels]
    assert pairs == ["1–3 × 4–10", "4–10 × beyond 10", "beyond 10 × 1–3", "beyond 10 × beyond 10"]
    # The arm with the least traffic makes nothing known.
    levels_by_known = [row["candidate × known"] for row in levels]
    assert levels_by_known == ["1 × known", "4–6 × known", "2–3 × new", "beyond 20 × new"]
    assert [row["llm"] for row in levels] == ["none", "1", "5", "23"]
    assert [row["llm × known"] for row in levels] == ["none × known", "1 × known", "5 × new", "23 × new"]


def test_the_only_serving_system_makes_documents_known() -> None:
    plan = FactorPlan(("production",), ("candidate",))
    codes = bin_factors(plan, np.array([[10, 1], [11, 1]]), np.zeros((2, 0), dtype=int))
    assert codes[:, plan.names.index("candidate × known")].tolist() == [1, 0]


@pytest.mark.parametrize("systems", [1, 2, 3, 5, 6, 7, 10])
def test_groups_hold_every_factor_once_and_reproduce_its_codes(systems: int) -> None:
    plan = FactorPlan(tuple("abcdefghij"[: (systems + 1) // 2]), tuple("klmnopqrst"[: systems // 2]), ("llm",))
    random = np.random.default_rng(0)
    ranks = random.integers(-1, 30, (500, systems))
    codes = bin_factors(plan, ranks, random.integers(0, 24, (500, 1)))
    members = [member for group in plan.groups for member in group.members]
    assert sorted(members) == list(range(len(plan.factors)))
    for group in plan.groups:
        np.testing.assert_array_equal(group.codes[:, group.find_states(codes)].T, codes[:, group.members])


def fit_densely(pool: PoolEvidence, mask: npt.NDArray[np.bool_], weight: Floats, rounds: int, start: Floats) -> Floats:
    """Iterative proportional scaling, factor by factor on single documents, on the log scale."""
    e = pool.examinations * pool.rate
    share = np.where(e > 0, FEW / (FEW + e), 0.0) * weight
    width = int(PLAN.count_levels().max())
    effects = start.copy()
    for _ in range(rounds):
        for member in [m for group in PLAN.groups for m in group.members if mask[m]]:
            code = pool.codes[:, member].astype(int)
            others = add_effects(pool, effects) - effects[member][code]
            have = np.bincount(code, pool.clicks * share, width)
            fitted = np.bincount(code, e * share * np.exp(others), width)
            pseudo = PSEUDO if PLAN.factors[member].kind == "main" else INTERACTION_PSEUDO
            effects[member] = np.log((have + pseudo) / (fitted + pseudo))
    return effects


def add_effects(pool: PoolEvidence, effects: Floats) -> Floats:
    return np.asarray(sum(effects[m][pool.codes[:, m]] for m in range(len(effects))))


def find_strength_directly(pool: PoolEvidence, effects: Floats, weight: Floats) -> Floats:
    """1 / (the weighted variance of x/(E·μ) beyond Poisson noise), by class of μ/m_q, pulled to that of all."""
    enough = pool.examinations > 5
    level = np.exp(add_effects(pool, effects))[enough]
    e, x, mu, times = pool.examinations[enough], pool.clicks[enough], level * pool.rate[enough], weight[enough]
    w = times * e * FEW / (FEW + e * pool.rate[enough])

    def find_excess(rows: npt.NDArray[np.bool_]) -> float:
        if not w[rows].sum():
            return 0.0
        variance = np.average((x / e / mu - 1)[rows] ** 2, weights=w[rows])
        return float(variance - np.average(1 / (mu * e)[rows], weights=w[rows]))

    every = find_excess(np.ones(len(e), dtype=bool))
    values = []
    for low, high in itertools.pairwise((0.0, *STRENGTH_EDGES, np.inf)):
        rows = (level >= low) & (level < high)
        count = times[rows].sum()
        values.append((count * find_excess(rows) + 30 * every) / (count + 30))
    return np.clip(1 / np.maximum(values, 1e-9), 0.3, 1000)


def find_gamma_directly(pool: PoolEvidence, prior: Prior, draw: int) -> tuple[Floats, Floats]:
    """Shape and rate of the posterior of every document in one draw."""
    draw_set = prior.select_set(POSTERIOR)
    level = np.exp(add_effects(pool, spread_levels(draw_set.effects[draw])))
    s = draw_set.strength[draw][np.digitize(level, STRENGTH_EDGES)]
    examined = pool.examinations * np.exp(draw_set.exponent[draw] * pool.depth)
    return pool.clicks + s, examined + s / (pool.rate * level)


def spread_levels(effects: Floats) -> Floats:
    """Effects of all levels in a row as a table [factor, level]."""
    counts = PLAN.count_levels()
    table = np.zeros((len(counts), int(counts.max())))
    for place, part in enumerate(np.split(effects, np.cumsum(counts)[:-1])):
        table[place, : len(part)] = part
    return table


def test_the_prior_equals_dense_arithmetic_with_the_same_resampled_queries() -> None:
    pool, _ = draw_pool()
    pool = replace(pool, depth=np.zeros(pool.queries.rows))  # whatever the curve's exponent, the evidence is the same
    prior = fit(pool)
    every, ones = PLAN.select(), np.ones(pool.queries.rows)
    empty = np.zeros((len(PLAN.factors), int(PLAN.count_levels().max())))
    point = fit_densely(pool, every, ones, 60, empty)
    np.testing.assert_allclose(spread_levels(prior.effects), point, atol=1e-5)
    np.testing.assert_allclose(prior.strength, find_strength_directly(pool, point, ones), rtol=1e-4)
    weights = draw_poisson_weights(np.arange(BUCKETS, dtype=np.uint64), 8, 3)
    bucket = hash_bucket(pool.query_hash)[pool.queries.owner]
    draw_set = prior.select_set(POSTERIOR)
    for draw in (0, 5):
        weight = weights[bucket, draw].astype(np.float64)
        effects = fit_densely(pool, every, weight, 10, point)
        np.testing.assert_allclose(spread_levels(draw_set.effects[draw]), effects, atol=1e-5)
        np.testing.assert_allclose(draw_set.strength[draw], find_strength_directly(pool, effects, weight), rtol=1e-4)


def test_a_curve_is_never_taken_as_certain() -> None:
    pool, _ = draw_pool()
    assert fit(pool, exponent_sd=0.0).select_set(POSTERIOR).exponent.std() == pytest.approx(EXPONENT_FLOOR)
    assert fit(pool, exponent_sd=0.3).select_set(POSTERIOR).exponent.std() == pytest.approx(0.3)


def test_main_effects_leave_the_other_factors_at_zero() -> None:
    pool, _ = draw_pool()
    main = fit(pool).select_set(MAIN_EFFECTS)
    table = np.array([spread_levels(effects) for effects in main.effects])
    others = [place for place, factor in enumerate(PLAN.factors) if factor.kind != "main"]
    assert not table[:, others].any()
    assert table[:, 0].any()


def test_drawn_grades_equal_gamma_quantiles_over_the_mean_of_the_pool() -> None:
    pool, _ = draw_pool()
    prior = fit(pool, exponent_sd=0.2)
    grades = draw_grades(prior, POSTERIOR, pool)
    queries = np.repeat(pool.query_hash, pool.queries.lengths)
    uniform = (draw_steps(queries, pool.doc_hash, 8, 3) + 0.5) / 1024
    for draw in range(8):
        shape, inverse = find_gamma_directly(pool, prior, draw)
        rate = stats.gamma.ppf(uniform[:, draw], shape) / inverse
        base = rate.reshape(pool.queries.size, -1).mean(axis=1, keepdims=True)
        expected = np.digitize(rate.reshape(pool.queries.size, -1) / base, CUTS).ravel()
        assert np.mean(grades[draw] == expected) > 0.99


def test_floors_raise_and_fixed_grades_replace_what_is_drawn() -> None:
    pool, _ = draw_pool()
    prior = fit(pool)
    free = draw_grades(prior, POSTERIOR, pool)
    floor, fixed = np.zeros(pool.queries.rows), np.full(pool.queries.rows, np.nan)
    floor[:20], fixed[10:30] = 2.0, 1.0
    grades = draw_grades(prior, POSTERIOR, replace(pool, floor=floor, fixed=fixed))
    np.testing.assert_array_equal(grades[:, :10], np.maximum(free[:, :10], 2))
    assert (grades[:, 10:30] == 1).all()
    np.testing.assert_array_equal(grades[:, 30:], free[:, 30:])


def test_order_and_grouping_of_the_pairs_change_no_bit_of_the_prior() -> None:
    pool, _ = draw_pool()
    random = np.random.default_rng(5)
    expected = fit_prior(tabulate(pool), PLAN, draws=4, exponent_sd=0.1, not_vouched=["candidate"])
    rows = random.permutation(pool.queries.rows)
    parts = [tabulate(pool, part) for part in np.array_split(rows, 7)]
    table = merge_tables([merge_tables(parts[:3]), *parts[3:]])
    again = fit_prior(table, PLAN, draws=4, exponent_sd=0.1, not_vouched=["candidate"])
    np.testing.assert_array_equal(again.strength, expected.strength)
    np.testing.assert_array_equal(again.effects, expected.effects)
    for one, other in zip(again.sets, expected.sets, strict=True):
        np.testing.assert_array_equal(one.effects, other.effects)
        np.testing.assert_array_equal(one.unseen_effects, other.unseen_effects)
        np.testing.assert_array_equal(one.strength, other.strength)


def test_order_and_grouping_of_queries_and_documents_change_no_bit_of_the_grades() -> None:
    pool, _ = draw_pool(queries=300)
    prior = fit(pool, exponent_sd=0.1, draws=30)
    expected = draw_grades(prior, POSTERIOR, pool)
    random = np.random.default_rng(6)
    for count in (1, 7, 300):
        queries = random.permutation(300)[:count]
        rows = np.concatenate([q * 12 + random.permutation(12) for q in queries])
        names = ("doc_hash", "clicks", "examinations", "depth", "rate", "codes", "floor", "fixed")
        part = PoolEvidence(
            queries=Ragged.of_lengths(np.full(count, 12)),
            query_hash=pool.query_hash[queries],
            **{name: getattr(pool, name)[rows] for name in names},
        )
        np.testing.assert_array_equal(draw_grades(prior, POSTERIOR, part), expected[:, rows])


@pytest.mark.parametrize("shape", [0.3, 0.55, 1.0, 1.3, 4.7, 30.0, 63.9, 64.0, 500.0])
def test_gamma_draws_have_the_mean_the_variance_and_the_quantiles_of_the_distribution(shape: float) -> None:
    steps = np.arange(1024, dtype=np.uint16)
    draws = transform_steps(steps, np.full(1024, shape, dtype=np.float32)).astype(np.float64)
    assert draws.mean() == pytest.approx(shape, rel=1e-3)
    assert draws.var() == pytest.approx(shape, rel=1e-2)
    for level in (0.1, 0.25, 0.5, 0.75, 0.9, 0.975):
        step = int(level * 1024)
        expected = stats.gamma.ppf((step + 0.5) / 1024, shape)
        assert draws[step] == pytest.approx(expected, rel=0.01, abs=0.01 * shape)


def test_steps_are_uniform_and_independent_of_each_other() -> None:
    units = np.arange(4000, dtype=np.uint64)
    steps = draw_steps(units // np.uint64(40), units % np.uint64(40), 30, 1)
    assert stats.kstest(steps.ravel() / 1024, "uniform").statistic < 0.005
    assert np.abs(np.corrcoef(steps.T) - np.eye(30)).max() < 0.08
    assert (draw_steps(units[:1], units[:1], 30, 2) != steps[0]).any()


def test_normals_of_the_exponent_have_mean_0_and_variance_1() -> None:
    normals = draw_normals(30, 7)
    assert normals.mean() == pytest.approx(0, abs=1e-12)
    assert normals.std() == pytest.approx(1)
    assert (draw_normals(30, 8) != normals).any()


def test_a_candidate_of_other_days_has_no_factor_for_documents_that_nobody_was_shown() -> None:
    pool, ranks = draw_pool()
    prior = fit(pool, not_vouched=("candidate",), other_days=("candidate",), draws=20)
    unseen = pool.examinations == 0
    other = ranks.copy()
    other[unseen, 2] = np.where(other[unseen, 2] == 1, 30, 1)
    moved = replace(pool, codes=bin_factors(PLAN, other, np.zeros((len(other), 0), dtype=np.int64)))
    with_factor = [draw_grades(prior, POSTERIOR, each)[:, unseen] for each in (pool, moved)]
    without = [draw_grades(prior, OWN_REMOVED, each)[:, unseen] for each in (pool, moved)]
    assert (with_factor[0] != with_factor[1]).mean() > 0.05
    np.testing.assert_array_equal(without[0], without[1])
    # What was shown has the same relevance in both sets: only the base moves.
    one, two = prior.select_set(POSTERIOR), prior.select_set(OWN_REMOVED)
    np.testing.assert_array_equal(one.effects, two.effects)
    np.testing.assert_array_equal(one.strength, two.strength)


def test_a_candidate_that_may_know_this_log_has_no_factor_for_any_document() -> None:
    pool, ranks = draw_pool()
    pool = replace(pool, depth=np.zeros(pool.queries.rows))  # a drawn curve moves joint codes, of which there are fewer
    names = ("candidate", "second")
    plan, serving = FactorPlan(PLAN.serving, names), FactorPlan(PLAN.serving, ())

    def fit_plan(
        plan: FactorPlan, columns: list[int], not_vouched: tuple[str, ...] = (), other_days: tuple[str, ...] = ()
    ) -> Prior:
        codes = bin_factors(plan, ranks[:, columns], np.zeros((len(ranks), 0), dtype=np.int64))
        table = tabulate(replace(pool, codes=codes))
        return fit_prior(table, plan, draws=8, seed=3, not_vouched=not_vouched, other_days=other_days)

    def find_levels(*systems: str) -> npt.NDArray[np.bool_]:
        return np.repeat([bool({*systems} & {*factor.sources}) for factor in plan.factors], plan.count_levels())

    alone = fit_plan(plan, [0, 1, 2, 2], not_vouched=names).select_set(OWN_REMOVED)
    rest = fit_plan(serving, [0, 1]).select_set(POSTERIOR)
    assert not alone.effects[:, find_levels(*names)].any()
    np.testing.assert_allclose(alone.effects[:, ~find_levels(*names)], rest.effects, atol=1e-9)
    np.testing.assert_allclose(alone.strength, rest.strength, rtol=1e-9)
    np.testing.assert_array_equal(alone.unseen_effects, alone.effects)
    # One of each kind: shown documents lose the factor of the first only, the others both.
    mixed = fit_plan(plan, [0, 1, 2, 2], not_vouched=names, other_days=("second",)).select_set(OWN_REMOVED)
    assert not mixed.effects[:, find_levels("candidate")].any()
    assert mixed.effects[:, find_levels("second") & ~find_levels("candidate")].any()
    np.testing.assert_array_equal(mixed.unseen_effects, alone.effects)


def test_systems_that_are_vouched_for_need_no_set_without_their_factors() -> None:
    pool, _ = draw_pool()
    assert fit(pool).draw_sets == ((POSTERIOR, 8), (MAIN_EFFECTS, 8))
    assert fit(pool, not_vouched=["candidate"], draws=12).draw_sets[1:] == ((MAIN_EFFECTS, 10), (OWN_REMOVED, 12))


def test_the_described_posterior_follows_the_evidence_and_the_prior() -> None:
    pool, _ = draw_pool()
    prior = fit(pool)
    summary = describe_posterior(prior, pool)
    shape, rate = np.moveaxis(np.array([find_gamma_directly(pool, prior, draw) for draw in range(8)]), 1, 0)
    mean, variance = shape / rate, shape / rate**2
    np.testing.assert_allclose(summary.mean, mean.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(summary.sd, np.sqrt(variance.mean(axis=0) + mean.var(axis=0)), rtol=1e-4)
    np.testing.assert_allclose(summary.base, mean.mean(axis=0).reshape(60, 12).mean(axis=1), rtol=1e-5)
    low, high = summary.find_quantiles(0.05), summary.find_quantiles(0.95)
    assert ((low < summary.mean) & (summary.mean < high)).all()


def test_a_table_without_clicks_or_with_few_pairs_gives_a_prior() -> None:
    pool, _ = draw_pool(queries=2, documents=12)
    nothing = fit_prior(tabulate(replace(pool, examinations=np.zeros(24), clicks=np.zeros(24))), PLAN, draws=3)
    assert (nothing.strength == 5.0).all()
    assert not nothing.effects.any()
    grades = draw_grades(nothing, POSTERIOR, replace(pool, examinations=np.zeros(24), clicks=np.zeros(24)))
    assert np.isfinite(grades).all()
    assert (fit(pool).strength == 5.0).all()
