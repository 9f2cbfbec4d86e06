"""Estimates on drawn labels: both variances, two priors, hulls; against direct computations on whole tables."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from tests.unit.udfs.test_partials import KEY, PLAN, pick, table
from udfs.ragged import Floats
from udfs.statistics.finish import finish_estimates
from udfs.statistics.frame import DRAWS, NUMBERS, QUERY, UNIT
from udfs.statistics.partial import merge_partials, partial_sums
from udfs.statistics.plan import Plan
from udfs.statistics.rubin import MODEL_WEIGHT

SETS = (("posterior", 12), ("main_effects", 5), ("own_factor_removed", 12))
DRAWN = replace(PLAN, draw_sets=SETS, draw_metrics=("m", "k"))
POSTERIOR, MAIN, OWN = slice(0, 12), slice(12, 17), slice(17, 29)
PAIR = {"baseline": "a", "candidate": "b", "segment": "all", "value": "all"}


def draw_table(n: int = 60, *, gap: float = 0.03, removed: float = -0.2) -> pd.DataFrame:
    """The table of `test_partials` with draws: the values are the means of the posterior's, as scoring makes them.

    With main effects only, `b` is better by `gap`; without its own factor, by `removed`.
    """
    random = np.random.default_rng(8)
    rows = table(n)
    b = (rows.system == "b").to_numpy()
    shared = random.normal(0, 0.02, 12)  # errors of a prior move all queries together
    draws = np.zeros((len(rows), 2, 29))
    for at, key in enumerate(("m", "k")):
        noise = random.normal(0, 0.05, (len(rows), 12)) + np.where(b[:, None], shared, 0.0)
        posterior = rows[key].to_numpy()[:, None] + noise
        draws[:, at, POSTERIOR] = posterior
        draws[:, at, MAIN] = posterior[:, :5] + gap * b[:, None]
        draws[:, at, OWN] = posterior + removed * b[:, None]
    undefined = random.random((len(rows), 2, 29)) < 0.05
    draws[undefined] = np.nan
    draws = draws.astype(np.float32)
    for at, key in enumerate(("m", "k")):
        of_key = pd.DataFrame(draws[:, at, POSTERIOR].astype(float))
        rows[key] = of_key.mean(axis=1).where(rows[key].notna())
    return rows.assign(draws=pd.Series(list(draws.reshape(len(rows), -1))))


def run(parts: Sequence[pd.DataFrame], plan: Plan) -> pd.DataFrame:
    def batches(rows: pd.DataFrame) -> list[Any]:
        named = rows.rename(columns={"query": QUERY, "unit": UNIT, "draws": DRAWS})
        if DRAWS in named:
            named[DRAWS] = [np.asarray(draws, dtype=np.float32).tobytes() for draws in named[DRAWS]]
        named[NUMBERS] = named[list(plan.numbers)].to_numpy(dtype=float).tolist()
        return list(pa.Table.from_pandas(named, preserve_index=False).to_batches(max_chunksize=17))

    partials = [p for part in parts for p in partial_sums(plan, whole=plan.clustered)(batches(part))]
    batches_of_rows = list(finish_estimates(plan)(merge_partials(plan)(partials)))
    estimates: pd.DataFrame = pa.Table.from_batches(batches_of_rows).to_pandas()
    return estimates.sort_values(KEY, na_position="first").reset_index(drop=True)


def collect_values(rows: pd.DataFrame, system: str, at: int, key: str) -> tuple[Floats, Floats]:
    """Of one system, values by query and draws × queries, undefined draws replaced by the value."""
    subset = rows[rows.system == system].sort_values("query")
    values = subset[key].to_numpy()
    draws = np.stack(subset.draws.to_list()).reshape(len(subset), 2, 29)[:, at].astype(float)
    return values, np.where(np.isnan(draws), values[:, None], draws).T


def combine(d: Floats, means: Floats, other: bool = False) -> tuple[float, float, float, float]:
    """Value, T, degrees and the labels' share of T, as the formulas say."""
    n, m = len(d), 12
    within, between = d.var(ddof=1) / n, means[OWN if other else POSTERIOR].var(ddof=1)
    gap = means[MAIN].mean() - means[:5].mean()
    added = (1 + 1 / m) * between
    share = added / (within + added)
    degrees = 1 / (share**2 / (m - 1) + 1 / (n / (n + 2) * (n - 1) * (1 - share)))
    total = within + added + MODEL_WEIGHT * gap**2
    value = d.mean() + (means[OWN].mean() - means[POSTERIOR].mean() if other else 0.0)
    return float(value), float(total), float(degrees), float(1 - within / total)


@pytest.mark.parametrize(("at", "key"), [(0, "m"), (1, "k")])
def test_a_difference_has_both_variances(at: int, key: str) -> None:
    rows = draw_table()
    row = pick(run([rows], DRAWN), **PAIR, metric=key)
    (a, of_a), (b, of_b) = (collect_values(rows, system, at, key) for system in "ab")
    used = ~np.isnan(a) & ~np.isnan(b)
    d = (b - a)[used]
    value, total, degrees, share = combine(d, (of_b - of_a)[:, used].mean(axis=1))
    assert (row.delta, row.queries) == (pytest.approx(value), used.sum())
    assert row.stderr == pytest.approx(np.sqrt(total), rel=1e-8)
    assert row.degrees == pytest.approx(degrees, rel=1e-8)
    assert row.label_share == pytest.approx(share, rel=1e-8)
    low, high = stats.t.interval(0.95, degrees, loc=value, scale=np.sqrt(total))
    assert [row.delta_low, row.delta_high] == pytest.approx([low, high], rel=1e-8)
    assert row.p_value == pytest.approx(2 * stats.t.sf(abs(value) / np.sqrt(total), degrees), rel=1e-8)
    assert row.query_variance == pytest.approx((of_b - of_a)[POSTERIOR, used].var(axis=0, ddof=1).mean(), rel=1e-8)
    means = (of_b - of_a)[:, used].sum(axis=1) / of_a[:, used].sum(axis=1)
    plain = pick(run([rows], PLAN), **PAIR, metric=key)
    between = (1 + 1 / 12) * means[POSTERIOR].var(ddof=1) + (means[MAIN].mean() - means[:5].mean()) ** 2
    assert row.relative_stderr**2 == pytest.approx(plain.relative_stderr**2 + between, rel=1e-6)
    assert not row.hull and np.isnan(row.other)


def test_the_averages_of_a_system_have_both_variances() -> None:
    rows = draw_table()
    estimates = run([rows], DRAWN)
    for value in ("all", "ios"):
        subset = rows if value == "all" else rows[rows.device == value]
        segment = "all" if value == "all" else "device"
        row = pick(estimates, baseline=None, candidate="b", segment=segment, value=value, metric="m")
        m, draws = collect_values(subset, "b", 0, "m")
        _, total, degrees, share = combine(m, draws.mean(axis=1))
        low, high = stats.t.interval(0.95, degrees, loc=m.mean(), scale=np.sqrt(total))
        assert [row.macro_low, row.macro_high] == pytest.approx([low, high], rel=1e-8)
        assert (row.macro, row.label_share) == (pytest.approx(m.mean()), pytest.approx(share, rel=1e-8))
    plain = run([rows], PLAN)
    for form in ("weighted", "micro"):
        assert row[form] == pick(plain, baseline=None, candidate="b", segment="device", value="ios", metric="m")[form]
    of_b = {"baseline": None, "candidate": "b", "segment": "all", "value": "all", "metric": "m"}
    whole, narrow = (pick(each, **of_b) for each in (estimates, plain))
    weight, pool = (rows[rows.system == "b"].sort_values("query")[name].to_numpy() for name in ("weight", "m__pool"))
    _, draws = collect_values(rows, "b", 0, "m")
    for form, w in (("weighted", weight), ("micro", pool)):
        means = draws @ w / w.sum()
        within = ((narrow[f"{form}_high"] - narrow[f"{form}_low"]) / 2 / stats.t.ppf(0.975, 59)) ** 2
        added = (1 + 1 / 12) * means[POSTERIOR].var(ddof=1)
        share = added / (added + within)
        degrees = 1 / (share**2 / 11 + 1 / (60 / 62 * 59 * (1 - share)))
        total = within + added + MODEL_WEIGHT * (means[MAIN].mean() - means[:5].mean()) ** 2
        half = (whole[f"{form}_high"] - whole[f"{form}_low"]) / 2
        assert half == pytest.approx(stats.t.ppf(0.975, degrees) * np.sqrt(total), rel=1e-6)


@pytest.mark.parametrize(("removed", "straddles"), [(-0.2, True), (0.2, False)])
def test_a_candidate_that_nobody_vouches_for_has_the_hull_of_two_answers(removed: float, straddles: bool) -> None:
    rows = draw_table(removed=removed)
    rows.loc[rows.system == "b", "m"] += 0.1
    rows["draws"] = rows.draws + np.where(rows.system == "b", np.float32(0.1), np.float32(0.0))
    plan = replace(DRAWN, not_vouched=("b",))
    row, single = (pick(run([rows], p), **PAIR, metric="m") for p in (plan, DRAWN))
    (a, of_a), (b, of_b) = (collect_values(rows, system, 0, "m") for system in "ab")
    value, total, degrees, _ = combine(b - a, (of_b - of_a).mean(axis=1), other=True)
    low, high = stats.t.interval(0.95, degrees, loc=value, scale=np.sqrt(total))
    assert row.hull
    assert [row.other, row.other_stderr] == pytest.approx([value, np.sqrt(total)], rel=1e-6)
    assert row.delta_low == pytest.approx(min(single.delta_low, low), rel=1e-6)
    assert row.delta_high == pytest.approx(max(single.delta_high, high), rel=1e-6)
    other_p = 2 * stats.t.sf(abs(value) / np.sqrt(total), degrees)
    assert row.p_value == (1.0 if straddles else pytest.approx(max(single.p_value, other_p), rel=1e-6))
    assert (row.delta, row.stderr, row.label_share) == (single.delta, single.stderr, single.label_share)
    assert row.detectable_delta == pytest.approx(single.detectable_delta + abs(value - single.delta), rel=1e-6)


def test_draws_that_are_all_equal_add_nothing() -> None:
    rows = draw_table()
    values = rows[["m", "k"]].to_numpy(dtype=np.float32)
    rows = rows.assign(draws=pd.Series(list(np.repeat(values, 29, axis=1))))
    drawn, plain = run([rows], replace(DRAWN, not_vouched=("b",))), run([rows], PLAN)
    kept = ["stderr", "degrees", "delta_low", "delta_high", "macro_low", "macro_high", "weighted_low", "p_value"]
    pd.testing.assert_frame_equal(drawn[kept], plain[kept], rtol=1e-12)
    assert (drawn.label_share.dropna() == 0).all()


def test_a_metric_without_draws_keeps_its_error() -> None:
    rows = draw_table()
    rows["draws"] = [row[:29] for row in rows.draws]
    drawn, plain = (pick(run([rows], plan), **PAIR, metric="k") for plan in (replace(DRAWN, draw_metrics=("m",)), PLAN))
    assert (drawn.stderr, drawn.p_value, drawn.degrees) == (plain.stderr, plain.p_value, plain.degrees)
    assert np.isnan(drawn.label_share)
    assert run([rows], replace(DRAWN, draw_metrics=("m",))).label_share.notna().any()


@pytest.mark.parametrize("clustered", [False, True])
def test_a_metric_that_no_draw_changes_needs_no_column_of_draws(clustered: bool) -> None:
    rows = draw_table(200)
    draws = np.stack(rows.draws.to_list()).reshape(len(rows), 2, 29)
    draws[:, 1] = rows.k.to_numpy(dtype=np.float32)[:, None]
    plan = replace(DRAWN, clustered=clustered, not_vouched=("b",))
    repeated = run([rows.assign(draws=list(draws.reshape(len(rows), -1)))], plan)
    constant = run([rows.assign(draws=list(draws[:, 0]))], replace(plan, constant_metrics=("k",)))
    pd.testing.assert_frame_equal(constant, repeated, check_exact=True)
    assert pick(constant, **PAIR, metric="m").label_share > 0 == pick(constant, **PAIR, metric="k").label_share


@pytest.mark.parametrize("clustered", [False, True])
def test_sums_of_draws_merge_for_any_partitioning(clustered: bool) -> None:
    plan = replace(DRAWN, clustered=clustered, not_vouched=("b",), bootstrap=20, percentiles=True, randomisation=20)
    rows = draw_table(200)
    whole = run([rows], plan)
    shuffled = rows.iloc[np.random.default_rng(9).permutation(len(rows))]
    pieces = [shuffled[shuffled.unit % 3 == i] for i in range(3)] if clustered else [shuffled[i::7] for i in range(7)]
    pd.testing.assert_frame_equal(run(pieces, plan), whole, rtol=1e-9, atol=1e-12)
    assert whole.p_bootstrap.notna().any() and whole.p_randomisation.notna().any()


@pytest.mark.parametrize(("clustered", "heaviest"), [(False, 1), (False, 20_000), (True, 20_000)])
def test_estimates_have_the_same_bits_for_any_partitioning(clustered: bool, heaviest: int) -> None:
    plan = replace(DRAWN, clustered=clustered, not_vouched=("b",))
    rows = draw_table(3_000)
    rows["weight"] = rows["query"].map(lambda query: 1.0 + query % heaviest)
    whole = run([rows], plan)
    random = np.random.default_rng(9)
    for parts in (1, 7, 200):
        shuffled = rows.iloc[random.permutation(len(rows))]
        of_part = shuffled["unit" if clustered else "query"] % parts
        pieces = [shuffled[of_part == part] for part in range(parts)]
        pd.testing.assert_frame_equal(run([piece for piece in pieces if len(piece)], plan), whole, check_exact=True)
    if not clustered:  # rows of a query in several partitions
        pd.testing.assert_frame_equal(run([rows.iloc[part::7] for part in range(7)], plan), whole, check_exact=True)


def test_resampled_p_values_stay_about_queries() -> None:
    rows = draw_table()
    plans = [replace(plan, bootstrap=200, percentiles=True, randomisation=200) for plan in (DRAWN, PLAN)]
    drawn, plain = (pick(run([rows], plan), **PAIR, metric="m") for plan in plans)
    assert (drawn.p_bootstrap, drawn.p_randomisation) == (plain.p_bootstrap, plain.p_randomisation)
    assert drawn.delta_low < plain.delta_low  # but the interval has both errors


def test_a_comparison_says_what_it_rests_on() -> None:
    rows = draw_table()
    random = np.random.default_rng(2)
    rows["unseen"], rows["judged"] = random.random(len(rows)), random.integers(0, 2, len(rows))
    estimates = run([rows], replace(DRAWN, unseen=("unseen", None)))
    wide = rows.pivot(index="query", columns="system", values=["unseen", "judged", "k"])
    m, k = (pick(estimates, **PAIR, metric=key) for key in "mk")
    assert m.unseen_weight == pytest.approx(wide.unseen.b.mean())
    assert m.untrafficked == pytest.approx(((wide.judged.a == 0) & (wide.judged.b == 0)).mean())
    both = wide.k.a.notna() & wide.k.b.notna()
    assert k.untrafficked == pytest.approx(((wide.judged.a == 0) & (wide.judged.b == 0))[both].mean())
    assert run([rows], DRAWN).unseen_weight.isna().all()


def test_another_curve_moves_a_difference_by_its_slope() -> None:
    rows, exponents = draw_table(), tuple(np.random.default_rng(6).normal(0, 0.1, 12))
    row = pick(run([rows], replace(DRAWN, exponents=exponents)), **PAIR, metric="m")
    (_, of_a), (_, of_b) = (collect_values(rows, system, 0, "m") for system in "ab")
    slope = np.polyfit(exponents, (of_b - of_a)[POSTERIOR].mean(axis=1), 1)[0]
    assert row.curve_shift == pytest.approx(slope * np.std(exponents, ddof=1), rel=1e-6)
    assert run([rows], DRAWN).curve_shift.isna().all()


def test_intervals_cover_with_errors_of_the_labels_and_not_without() -> None:
    """100 worlds in which the truth differs from what is measured by an error that all queries share."""
    random = np.random.default_rng(12)
    plan = Plan(
        systems=("a", "b"), metrics=("m",), pairs=(("a", "b"),), judged=(None,), draw_sets=(("posterior", 20),),
        draw_metrics=("m",),
    )  # fmt: skip
    covers = {True: 0, False: 0}
    for _ in range(100):
        query = random.integers(-(2**63), 2**63 - 1, 60)
        center, shared = 0.1 + random.normal(0, 0.03), random.normal(0, 0.03, 20)
        d = random.normal(center, 0.1, 60)
        rows = pd.DataFrame({"query": np.repeat(query, 2), "system": ["a", "b"] * 60, "weight": 1.0})
        rows["m"] = np.stack((np.zeros(60), d), axis=1).ravel()
        b = (rows.system == "b").to_numpy()[:, None]
        rows["draws"] = list((rows.m.to_numpy()[:, None] + b * (shared - shared.mean())).astype(np.float32))
        for labels in covers:
            row = pick(run([rows], plan if labels else replace(plan, draw_sets=(), draw_metrics=())), baseline="a")
            covers[labels] += row.delta_low <= 0.1 <= row.delta_high
    assert covers[False] < 70
    assert covers[True] >= 93
