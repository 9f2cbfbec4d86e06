"""Judged queries: how they are drawn, what they correct, and how far two judges agree."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipelines.comparison.judging.apply import (
    PairedQueries,
    SheetCount,
    correct_segments,
    match_judged_queries,
)
from pipelines.comparison.judging.correction import use_correction
from pipelines.comparison.judging.difference import (
    IDEAL_ERROR,
    JudgedSample,
    ModelAnswer,
    correct_answer,
    predict_answer,
)
from pipelines.comparison.judging.kappa import Grades, measure_kappa
from pipelines.comparison.judging.rescore import JudgedTables
from pipelines.comparison.judging.sample import FLOOR, compute_chances, sample_queries
from udfs.ragged import Floats
from udfs.registry import parse_metric
from udfs.statistics.plan import Plan
from udfs.statistics.resample import draw_words

QUERIES = 1000
HASHES = draw_words(np.arange(QUERIES, dtype=np.uint64), 1, 5)[:, 0]
RANDOM = np.random.default_rng(3)
SPREAD = RANDOM.gamma(2.0, 0.05, QUERIES)
TRUTH = RANDOM.normal(0.05, 0.2, QUERIES)


def draw_sample(model: Floats, seed: int, *, queries: int = 100) -> JudgedSample:
    chance = compute_chances(SPREAD, queries)
    rows = sample_queries(chance, HASHES, queries, seed)
    return JudgedSample(chance[rows], model[rows], TRUTH[rows])


def answer(model: Floats, labels: float = 0.02**2) -> ModelAnswer:
    return ModelAnswer(float(model.mean()), within=1e-5, labels=labels, queries=QUERIES)


def test_chances_follow_the_spread_with_a_floor_and_sum_to_the_queries() -> None:
    spread = np.array([0.0, 0.1, 0.2, 0.3, np.nan])
    chance = compute_chances(spread, 2)
    assert chance.sum() == pytest.approx(2)
    assert chance[4] == 0
    floor = FLOOR * 0.15
    assert chance[:4] == pytest.approx(np.array([floor, 0.1, 0.2, 0.3]) * 2 / (0.6 + floor))


def test_a_chance_is_at_most_one_and_the_rest_is_shared() -> None:
    chance = compute_chances(np.array([10.0, 1.0, 1.0, 1.0, 1.0]), 3)
    assert chance[0] == 1
    assert chance[1:] == pytest.approx(0.5), "floor and spread are FLOOR · 2.8 < 1 for the others"
    assert compute_chances(SPREAD, 100).sum() == pytest.approx(100)
    assert compute_chances(np.array([0.1, np.nan]), 5).tolist() == [1, 0]
    assert compute_chances(np.zeros(4), 2).tolist() == [0.5] * 4


def test_draws_are_reproducible_and_do_not_depend_on_the_order_of_queries() -> None:
    chance = compute_chances(SPREAD, 50)
    first = sample_queries(chance, HASHES, 50, 7)
    assert len(set(first.tolist())) == 50
    order = RANDOM.permutation(QUERIES)
    again = sample_queries(chance[order], HASHES[order], 50, 7)
    assert order[again].tolist() == first.tolist()
    assert set(sample_queries(chance, HASHES, 50, 8).tolist()) != set(first.tolist())


def test_queries_are_drawn_as_often_as_their_chances_say() -> None:
    chance, seeds = compute_chances(SPREAD, 100), 1500
    counts = np.zeros(QUERIES)
    for seed in range(seeds):
        counts[sample_queries(chance, HASHES, 100, seed)] += 1
    z = (counts / seeds - chance) / np.sqrt(chance * (1 - chance) / seeds)
    assert abs(z.std() - 1) < 0.1
    likely = chance > np.median(chance)
    assert counts[likely].sum() / seeds == pytest.approx(chance[likely].sum(), rel=0.01)


WRONG_MODELS = [TRUTH + 0.2, -TRUTH, TRUTH * 0.3 + SPREAD, np.zeros(QUERIES)]


@pytest.mark.parametrize("model", WRONG_MODELS)
def test_the_mean_error_is_unbiased_whatever_the_model_says(model: Floats) -> None:
    alone = replace(answer(model), other=1.0)  # with a second answer, nothing is pooled
    estimates = [correct_answer(alone, draw_sample(model, seed)) for seed in range(400)]
    errors = np.array([float(each.value) for each in estimates]) - TRUTH.mean()
    assert abs(errors.mean()) < 1e-12 + 3 * errors.std() / np.sqrt(len(errors))


@pytest.mark.parametrize("labels", [0.005**2, 0.02**2, 0.1**2])
@pytest.mark.parametrize("model", WRONG_MODELS)
def test_pooled_with_a_wrong_model_the_interval_still_covers(model: Floats, labels: float) -> None:
    estimates = [correct_answer(answer(model, labels), draw_sample(model, seed)) for seed in range(300)]
    bounds = np.array([each.interval(0.95) for each in estimates])
    assert np.mean((bounds[:, 0] <= TRUTH.mean()) & (bounds[:, 1] >= TRUTH.mean())) >= 0.9


def test_an_error_that_all_queries_share_cancels_exactly() -> None:
    noisy = TRUTH + RANDOM.normal(0, 0.1, QUERIES)
    certain = replace(answer(noisy), other=1.0)  # a second answer: nothing is pooled
    plain = correct_answer(certain, draw_sample(noisy, 1))
    shifted = correct_answer(replace(certain, value=certain.value + 0.3), draw_sample(noisy + 0.3, 1))
    assert float(shifted.value) == pytest.approx(float(plain.value), abs=1e-12)
    assert float(shifted.stderr) == pytest.approx(float(plain.stderr), abs=1e-12)


def test_a_hand_value_of_the_difference_estimator() -> None:
    sample = JudgedSample(np.array([0.5, 0.25]), np.array([0.1, 0.0]), np.array([0.2, 0.4]))
    mean = (2 * 0.1 + 4 * 0.4) / 6
    variance = 2 * (0.5 * (2 * (0.1 - mean)) ** 2 + 0.75 * (4 * (0.4 - mean)) ** 2) / 36
    center = (2 * 0.2 + 4 * 0.4) / 6
    between = 2 * (2 * (0.2 - center) ** 2 + 4 * (0.4 - center) ** 2) / 6 / 10
    alone = correct_answer(ModelAnswer(0.1, 0.0, 0.01, 10, other=0.5), sample)
    assert float(alone.value) == pytest.approx(0.4)
    assert float(alone.stderr) ** 2 == pytest.approx(variance + between + (IDEAL_ERROR * 0.4) ** 2)
    pooled = correct_answer(ModelAnswer(0.1, 0.0, 0.01, 10), sample)
    doubt = 4 * variance + mean**2  # the labels claim less
    share = doubt / (doubt + variance)
    value = 0.1 + share * mean
    assert float(pooled.value) == pytest.approx(value)
    assert float(pooled.stderr) ** 2 == pytest.approx(share * variance + between + (IDEAL_ERROR * value) ** 2)
    assert float(pooled.degrees) == 1


def test_a_model_that_agrees_with_the_judges_narrows_the_interval_and_a_wrong_one_hardly_does() -> None:
    right = TRUTH + RANDOM.normal(0, SPREAD)
    alone = replace(answer(right), other=1.0)
    sample = draw_sample(right, 4)
    assert correct_answer(answer(right), sample).stderr < 0.95 * correct_answer(alone, sample).stderr
    wrong = draw_sample(right + 0.3, 4)
    moved = replace(answer(right), value=alone.value + 0.3)
    assert float(correct_answer(moved, wrong).value) == pytest.approx(
        float(correct_answer(replace(moved, other=1.0), wrong).value), abs=0.003
    )


def test_the_expected_width_is_met_if_the_model_knows_its_errors() -> None:
    widths, expected = [], []
    for seed in range(20):
        random = np.random.default_rng(seed)
        truth = TRUTH + random.normal(0, SPREAD) + random.normal(0, 0.03)
        model_answer = answer(TRUTH, labels=0.03**2)
        chance = compute_chances(SPREAD, 100)
        expected.append(float(predict_answer(model_answer, TRUTH, SPREAD, chance).stderr))
        rows = sample_queries(chance, HASHES, 100, seed)
        sample = JudgedSample(chance[rows], TRUTH[rows], truth[rows])
        widths.append(float(correct_answer(model_answer, sample).stderr))
    assert np.mean(widths) == pytest.approx(np.mean(expected), rel=0.05)


def build_tables(queries: int = 60) -> JudgedTables:
    """Drawn queries of two systems and two devices: `new` gains 0.2 by the judges where the model says 0.1."""
    names = [f"q{number}" for number in range(queries)]
    sheet = pd.DataFrame({"query_id": names, "chance": 0.1, "graded": True})
    rows = [(system, name, ("web", "app")[at % 3 == 0]) for system in ("old", "new") for at, name in enumerate(names)]
    shared = pd.DataFrame(rows, columns=["system", "query_id", "device"])
    new = shared["system"] == "new"
    by_model = shared.assign(ndcg_at_10=np.where(new, 0.6, 0.5))
    by_judges = shared.assign(ndcg_at_10=np.where(new, 0.6, 0.4), judged_at_10=1.0, retrieved=10)
    return JudgedTables(sheet, by_model, by_judges)


def test_a_query_counts_where_the_top_of_both_lists_is_graded() -> None:
    tables = build_tables()
    tables.by_judges.loc[0, "judged_at_10"] = 0.9
    tables.by_judges.loc[1, ["judged_at_10", "retrieved"]] = [0.0, 0]  # an empty list has nothing to grade
    paired = match_judged_queries(tables, "old", "new", parse_metric("ndcg@10"))
    assert paired.complete.tolist() == [False, *[True] * 59]
    assert paired.judged == pytest.approx(0.2)


def correct(paired: PairedQueries, tables: JudgedTables) -> dict[tuple[str, str], dict[str, Any]]:
    plan = Plan(systems=("old", "new"), metrics=("ndcg_at_10",), segments=(("device",),), pairs=(("old", "new"),))
    row = {"delta": 0.1, "stderr": 0.03, "label_share": 0.9, "queries": 600, "hull": True, "other": 0.3}
    keys = [("old", "new", *cell, "ndcg_at_10") for cell in (("all", "all"), ("device", "web"), ("device", "app"))]
    estimates: dict[tuple[str, ...], dict[str, Any]] = {key: row | {"baseline_mean": 0.5} for key in keys}
    records = correct_segments(paired, tables, ("old", "new", "ndcg_at_10"), estimates, plan)
    names = ("judged_queries", "delta_corrected", "corrected_low", "corrected_high")
    return {(str(r[2]), str(r[3])): dict(zip(names, r[5:9], strict=True)) | {"relative": r[11]} for r in records}


def test_segments_are_corrected_where_they_have_enough_judged_queries() -> None:
    tables = build_tables()
    corrected = correct(match_judged_queries(tables, "old", "new", parse_metric("ndcg@10")), tables)
    assert set(corrected) == {("all", "all"), ("device", "web")}, "20 queries of the app are too few"
    whole = corrected["all", "all"]
    assert whole["judged_queries"] == 60
    assert whole["delta_corrected"] == pytest.approx(0.2)
    assert whole["corrected_low"] < 0.2 < whole["corrected_high"]
    assert whole["relative"] == pytest.approx(0.5), "of the baseline's mean by the judges, 0.4"


@pytest.mark.parametrize(
    ("graded", "complete", "usable"), [(100, 80, True), (100, 79, False), (30, 30, True), (29, 29, False)]
)
def test_a_sheet_is_used_only_where_enough_of_it_is_graded_in_whole(graded: int, complete: int, usable: bool) -> None:
    assert SheetCount("old", "new", "ndcg_at_10", 100, graded, complete).usable == usable


def test_the_corrected_answer_replaces_the_hull() -> None:
    row = {"delta": 0.1, "hull": True, "delta_corrected": None}
    assert use_correction(row) == row
    numbers = {"corrected_low": 0.0, "corrected_high": 0.4, "corrected_stderr": 0.1}
    corrected = use_correction(row | numbers | {"delta_corrected": 0.2})
    assert (corrected["delta"], corrected["stderr"], corrected["hull"]) == (0.2, 0.1, False)
    assert (corrected["delta_low"], corrected["delta_high"]) == (0.0, 0.4)


def test_weighted_kappa_is_that_of_the_confusion_matrix() -> None:
    one = {("q1", "a"): 0.0, ("q1", "b"): 1.0, ("q2", "a"): 2.0, ("q2", "b"): 2.0, ("q3", "a"): 0.0, ("q9", "x"): 3.0}
    two = {("q1", "a"): 0.0, ("q1", "b"): 2.0, ("q2", "a"): 2.0, ("q2", "b"): 1.0, ("q3", "a"): 1.0, ("q8", "x"): 3.0}
    agreement = measure_kappa(one, two)
    assert agreement is not None
    observed = np.zeros((3, 3))
    for pair in one.keys() & two.keys():
        observed[int(one[pair]), int(two[pair])] += 1
    weight = np.square(np.subtract.outer(np.arange(3), np.arange(3)))
    chance = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / observed.sum()
    assert agreement.kappa == pytest.approx(1 - (weight * observed).sum() / (weight * chance).sum())
    assert (agreement.pairs, agreement.queries, agreement.equal) == (5, 3, 0.4)
    assert agreement.low < agreement.kappa < agreement.high


def test_the_interval_of_kappa_covers_the_kappa_of_many() -> None:
    def judge(random: np.random.Generator, queries: int) -> tuple[Grades, Grades]:
        true = random.integers(0, 4, (queries, 5))
        habit = random.normal(0, 0.7, (queries, 1))  # judges differ by query, so that its pairs are dependent
        other = np.clip(np.rint(true + habit + random.normal(0, 0.5, true.shape)), 0, 3)
        pairs = [(f"q{row}", f"d{column}") for row, column in np.ndindex(true.shape)]
        one, two = (dict(zip(pairs, map(float, grades.ravel()), strict=True)) for grades in (true, other))
        return one, two

    true = measure_kappa(*judge(np.random.default_rng(0), 20_000))
    assert true is not None
    covered = 0
    for seed in range(200):
        agreement = measure_kappa(*judge(np.random.default_rng(seed + 1), 60))
        assert agreement is not None
        covered += agreement.low <= true.kappa <= agreement.high
    assert 0.9 <= covered / 200 <= 0.99


def test_kappa_without_common_pairs_or_without_variation() -> None:
    assert measure_kappa({("q", "a"): 1.0}, {("q", "b"): 1.0}) is None
    same = measure_kappa({("q", "a"): 1.0, ("r", "a"): 1.0}, {("q", "a"): 1.0, ("r", "a"): 1.0})
    assert same is not None
    assert math.isnan(same.kappa)
    assert same.equal == 1
