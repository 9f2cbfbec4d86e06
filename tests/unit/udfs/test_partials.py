"""Estimates of whole tables: partial sums that merge, whatever the partitions and the order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from udfs.statistics.finish import finish_estimates
from udfs.statistics.frame import NUMBERS, QUERY, UNIT
from udfs.statistics.partial import merge_partials, partial_sums
from udfs.statistics.plan import Plan
from udfs.statistics.resample import draw_poisson_weights, draw_signs

PLAN = Plan(
    systems=("a", "b"),
    metrics=("m", "k"),
    pooled=("m",),
    segments=(("device",), ("device", "locale")),
    pairs=(("a", "b"),),
    judged=(None, None),
)
KEY = ["baseline", "candidate", "segment", "value", "metric"]


def table(n: int = 60) -> pd.DataFrame:
    """`n` queries of two systems; `k` is undefined here and there, and some devices are unknown."""
    random = np.random.default_rng(3)
    query = np.random.default_rng(4).integers(-(2**63), 2**63 - 1, n)
    per_query = {
        "query": query,
        "unit": query % 7,
        "weight": random.integers(1, 9, n).astype(float),
        "device": random.choice(np.array(["ios", "web", None], dtype=object), n),
        "locale": random.choice(["de", "en"], n),
    }
    rows = pd.DataFrame({name: np.repeat(values, 2) for name, values in per_query.items()})
    rows["system"] = np.tile(["a", "b"], n)
    rows["m"] = random.beta(0.5, 1, 2 * n)
    rows["k"] = np.where(random.random(2 * n) < 0.2, np.nan, random.random(2 * n))
    rows["retrieved"] = 10
    rows["m__pool"] = np.repeat(random.integers(1, 6, n).astype(float), 2)
    return rows


def run(parts: Sequence[pd.DataFrame], plan: Plan) -> pd.DataFrame:
    def batches(rows: pd.DataFrame) -> list[Any]:
        named = rows.rename(columns={"query": QUERY, "unit": UNIT})
        named[NUMBERS] = named[list(plan.numbers)].to_numpy(dtype=float).tolist()
        return list(pa.Table.from_pandas(named, preserve_index=False).to_batches(max_chunksize=17))

    partials = [p for part in parts for p in partial_sums(plan, whole=plan.clustered)(batches(part))]
    estimates: pd.DataFrame = pa.Table.from_batches(
        list(finish_estimates(plan)(merge_partials(plan)(partials)))
    ).to_pandas()
    return estimates.sort_values(KEY, na_position="first").reset_index(drop=True)


def pick(estimates: pd.DataFrame, **expected: str | None) -> Any:
    for name, value in expected.items():
        estimates = estimates[estimates[name].isna()] if value is None else estimates[estimates[name] == value]
    assert len(estimates) == 1
    return estimates.iloc[0]


def test_averages_of_a_segment_are_those_of_its_queries() -> None:
    rows = table()
    row = pick(run([rows], PLAN), baseline=None, candidate="a", segment="device", value="ios", metric="m")
    subset = rows[(rows.system == "a") & (rows.device == "ios")]
    assert (row.queries, row.skipped) == (len(subset), 0)
    assert row.macro == pytest.approx(subset.m.mean(), rel=1e-12)
    assert row.stddev == pytest.approx(subset.m.std(), rel=1e-12)
    assert row.weighted == pytest.approx(np.average(subset.m, weights=subset.weight), rel=1e-12)
    assert row.micro == pytest.approx((subset.m * subset.m__pool).sum() / subset.m__pool.sum(), rel=1e-12)
    expected = stats.t.interval(0.95, len(subset) - 1, loc=subset.m.mean(), scale=stats.sem(subset.m))
    np.testing.assert_allclose([row.macro_low, row.macro_high], expected, rtol=1e-9)
    for form, x in (("weighted", subset.weight), ("micro", subset.m__pool)):
        value = (subset.m * x).sum() / x.sum()
        error = np.sqrt(len(x) / (len(x) - 1) * ((subset.m * x - value * x) ** 2).sum()) / x.sum()
        expected = stats.t.interval(0.95, len(x) - 1, loc=value, scale=error)
        np.testing.assert_allclose([row[f"{form}_low"], row[f"{form}_high"]], expected, rtol=1e-9)


def test_what_is_undefined_is_skipped_and_counted_and_has_no_pool() -> None:
    rows = table()
    row = pick(run([rows], PLAN), baseline=None, candidate="b", segment="all", value="all", metric="k")
    subset = rows[rows.system == "b"].k
    assert (row.queries, row.skipped) == (subset.count(), subset.isna().sum())
    assert np.isnan(row.micro)


def test_every_query_is_in_one_value_of_each_segment() -> None:
    estimates = run([table()], PLAN)
    subset = estimates[estimates.baseline.isna() & (estimates.candidate == "a") & (estimates.metric == "m")]
    assert subset.groupby("segment").queries.sum().to_dict() == {"all": 60, "device": 60, "device / locale": 60}
    assert set(subset[subset.segment == "device"].value) == {"ios", "web", "(none)"}
    assert "(none) / de" in set(subset[subset.segment == "device / locale"].value)


def test_no_value_of_the_data_is_taken_for_another() -> None:
    rows = table()
    rows["device"], rows["locale"] = None, "de"
    odd = {0: ("(none)", "de"), 1: ("a / b", "c"), 2: ("a", "b / c"), 3: ('"(none)"', "de")}
    odd |= {4: ("a /", "b"), 5: ("a", "/ b")}
    for place, (device, locale) in odd.items():
        rows.loc[rows["query"] == rows["query"].unique()[place], ["device", "locale"]] = device, locale
    estimates = run([rows], PLAN)
    subset = estimates[estimates.baseline.isna() & (estimates.candidate == "a") & (estimates.metric == "m")]
    sizes = subset[subset.segment == "device / locale"].set_index("value").queries.to_dict()
    assert sizes == {
        "(none) / de": 54,
        '"(none)" / de': 1,
        '"a / b" / c': 1,
        'a / "b / c"': 1,
        '"\\"(none)\\"" / de': 1,
        '"a /" / b': 1,
        'a / "/ b"': 1,
    }


def test_a_combination_costs_what_it_has_not_what_it_could_have() -> None:
    rows = table(600)
    place = (rows["query"] % 600).astype(str)
    rows["country"], rows["region"], rows["city"] = "c" + place, "r" + place, "t" + place  # 600³ could be
    estimates = run([rows], replace(PLAN, segments=(("country", "region", "city"),), metrics=("m",), judged=(None,)))
    cells = estimates[(estimates.candidate == "a") & (estimates.segment != "all")]
    assert cells.queries.sum() == 600
    assert set(cells.value) == set(rows.country + " / " + rows.region + " / " + rows.city)


def test_a_comparison_is_paired_by_query() -> None:
    rows = table()
    row = pick(run([rows], PLAN), baseline="a", candidate="b", segment="all", value="all", metric="k")
    wide = rows.pivot(index="query", columns="system", values="k").dropna()
    d = wide.b - wide.a
    assert row.queries == len(d)
    assert (row.wins, row.ties, row.losses) == ((d > 0).sum(), 0, (d < 0).sum())
    assert row.p_value == pytest.approx(stats.ttest_rel(wide.b, wide.a).pvalue, rel=1e-9)
    assert row.delta == pytest.approx(d.mean(), rel=1e-12)
    assert (row.baseline_mean, row.candidate_mean) == (pytest.approx(wide.a.mean()), pytest.approx(wide.b.mean()))
    assert row.effect_size == pytest.approx(d.mean() / d.std(), rel=1e-9)
    assert row.detectable_delta == pytest.approx(2.8016 * d.std() / np.sqrt(len(d)), rel=1e-4)
    assert row.relative == pytest.approx(d.sum() / wide.a.sum(), rel=1e-9)


@pytest.mark.parametrize("plan", [PLAN, replace(PLAN, clustered=True), replace(PLAN, bootstrap=40, randomisation=40)])
def test_it_does_not_matter_whether_metrics_are_undefined_together(plan: Plan) -> None:
    rows = table(4_000).sort_values(["unit", "query"])  # more than one chunk
    rows.loc[rows.index[:6_000], "k"] = rows.k.fillna(0.5)  # the same queries for both, and then not
    alone = [run([rows], replace(plan, metrics=(key,), pooled=pooled)) for key, pooled in (("m", ("m",)), ("k", ()))]
    apart = pd.concat(alone).sort_values(KEY, na_position="first").reset_index(drop=True)
    pd.testing.assert_frame_equal(run([rows], plan), apart, rtol=1e-11)


@pytest.mark.parametrize("clustered", [False, True])
def test_neither_partitions_nor_order_change_the_answer(clustered: bool) -> None:
    plan = replace(PLAN, clustered=clustered, bootstrap=200, percentiles=True, randomisation=200, seed=5)
    rows = table(200)
    whole = run([rows], plan)
    order = np.random.default_rng(9).permutation(len(rows))
    shuffled = rows.iloc[order]
    pieces = [shuffled[shuffled.unit % 3 == i] for i in range(3)] if clustered else [shuffled[i::3] for i in range(3)]
    pd.testing.assert_frame_equal(run(pieces, plan), whole, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("by", ["query", "unit"])
def test_replicates_are_the_draws_of_each_query_or_cluster(by: str) -> None:
    plan = replace(PLAN, clustered=by == "unit", bootstrap=300, percentiles=True, randomisation=300, seed=5)
    rows = table()
    estimates = run([rows], plan)
    row = pick(estimates, baseline="a", candidate="b", segment="all", value="all", metric="m")
    wide = rows.pivot(index=["query", "unit"], columns="system", values="m")
    of_unit = (wide.b - wide.a).groupby(by).agg(["sum", "size"])
    d, size, unit = of_unit["sum"].to_numpy(), of_unit["size"].to_numpy(), of_unit.index.to_numpy().view(np.uint64)
    weights = draw_poisson_weights(unit, 300, 5).astype(float)
    means = np.array([(weights[:, b] * d).sum() / (weights[:, b] * size).sum() for b in range(300)])
    np.testing.assert_allclose([row.delta_low, row.delta_high], np.nanquantile(means, [0.025, 0.975]), rtol=1e-9)
    defined, mean = means[~np.isnan(means)], d.sum() / size.sum()
    assert row.p_bootstrap == pytest.approx(((abs(defined - mean) >= abs(mean) - 1e-12).sum() + 1) / (len(defined) + 1))
    far = [abs((flip * d).sum()) >= abs(d.sum()) - 1e-12 for flip in draw_signs(unit, 300, 5).T]
    assert row.p_randomisation == pytest.approx((sum(far) + 1) / 301)
    subset = pick(estimates, baseline=None, candidate="a", segment="all", value="all", metric="m")
    total = wide.a.groupby(by).sum().to_numpy()
    means = np.array([(weights[:, b] * total).sum() / (weights[:, b] * size).sum() for b in range(300)])
    np.testing.assert_allclose([subset.macro_low, subset.macro_high], np.nanquantile(means, [0.025, 0.975]), rtol=1e-9)


@pytest.mark.parametrize("percentiles", [False, True])
def test_without_differences_nothing_is_found_and_one_query_says_nothing(percentiles: bool) -> None:
    plan = replace(PLAN, segments=(), bootstrap=100, percentiles=percentiles, randomisation=100)
    tests = ["p_value", "p_randomisation", "p_bootstrap"]
    rows = table()
    rows["m"] = rows.groupby("query").m.transform("first")
    row = pick(run([rows], plan), baseline="a", candidate="b", segment="all", value="all", metric="m")
    assert row[tests].tolist() == [1.0, 1.0, 1.0]
    assert row[["delta", "delta_low", "delta_high", "effect_size", "detectable_delta"]].tolist() == [0.0] * 5
    assert (row.wins, row.ties, row.losses) == (0, 60, 0)
    one = pick(run([table(1)], plan), baseline="a", candidate="b", segment="all", value="all", metric="m")
    assert (one.queries, bool(np.isnan(one.delta))) == (1, False)
    unknown = [*tests, "delta_low", "delta_high", "effect_size", "detectable_delta", "stderr"]
    assert one[unknown].isna().all()


def test_clusters_are_the_units() -> None:
    rows = table()
    row = pick(
        run([rows], replace(PLAN, clustered=True)), baseline="a", candidate="b", segment="all", value="all", metric="m"
    )
    wide = rows.pivot(index=["unit", "query"], columns="system", values="m")
    d = wide.b - wide.a
    by_cluster = (d - d.mean()).groupby("unit").sum()
    stderr = np.sqrt(7 / 6 * (by_cluster**2).sum()) / len(d)
    assert (row.stderr, row.degrees) == (pytest.approx(stderr, rel=1e-9), 6)
    assert row.effect_size == pytest.approx(d.mean() / d.std(), rel=1e-9)


def test_queries_with_too_little_judged_do_not_count() -> None:
    rows = table()
    rows["judged"] = np.where(rows["query"].isin(rows["query"].unique()[:20]) & (rows.system == "b"), 0.5, 0.9)
    estimates = run([rows], replace(PLAN, judged=("judged", None), min_judged=0.7))
    row = pick(estimates, baseline="a", candidate="b", segment="all", value="all", metric="m")
    assert (row.queries, row.unjudged) == (40, 20)
    left_out = rows[rows["query"].isin(rows["query"].unique()[:20])].weight.sum() / rows.weight.sum()
    assert row.kept_traffic == pytest.approx(1 - left_out)
    alone = [pick(estimates, baseline=None, candidate=s, segment="all", value="all", metric="m") for s in "ab"]
    assert [(row.queries, row.skipped) for row in alone] == [(60, 0), (40, 20)]
    kept = rows[(rows.system == "b") & (rows.judged >= 0.7)]
    assert alone[1].macro == pytest.approx(kept.m.mean(), rel=1e-12)
    assert alone[1].micro == pytest.approx((kept.m * kept.m__pool).sum() / kept.m__pool.sum(), rel=1e-12)


def test_a_query_with_nothing_judged_is_counted_as_left_out() -> None:
    rows = table()
    first = rows["query"].isin(rows["query"].unique()[:20])
    rows["judged"] = np.where(first & (rows.system == "b"), 0.0, 0.9)
    rows.loc[first & (rows.system == "b"), "m"] = np.nan  # a top k without any judged document has no value
    estimates = run([rows], replace(PLAN, judged=("judged", None), min_judged=0.7))
    row = pick(estimates, baseline="a", candidate="b", segment="all", value="all", metric="m")
    assert (row.queries, row.unjudged) == (40, 20)
    assert row.kept_traffic == pytest.approx(1 - rows[first].weight.sum() / rows.weight.sum())


def test_a_system_that_finds_nothing_is_not_excused() -> None:
    rows = table()
    first = rows["query"].isin(rows["query"].unique()[:20]) & (rows.system == "b")
    rows["judged"] = np.where(first, 0.0, 0.9)
    rows.loc[first, ["m", "retrieved"]] = 0.0, 0
    estimates = run([rows], replace(PLAN, judged=("judged", None), min_judged=0.7))
    row = pick(estimates, baseline="a", candidate="b", segment="all", value="all", metric="m")
    assert (row.queries, row.unjudged, row.kept_traffic) == (60, 0, 1.0)
    assert row.candidate_mean == pytest.approx(rows[rows.system == "b"].m.mean())


def test_systems_without_a_common_query_have_an_empty_comparison() -> None:
    rows = table()
    half = rows["query"].unique()[:30]
    rows = rows[(rows.system == "a") == rows["query"].isin(half)]
    row = pick(run([rows], PLAN), baseline="a", candidate="b", segment="all", value="all", metric="m")
    assert row.queries == 0
    assert np.isnan([row.delta, row.p_value, row.delta_low, row.effect_size]).all()
