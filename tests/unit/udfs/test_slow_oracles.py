"""Metrics that no library has exactly, against slow versions of their formulas and examples worked by hand."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.helpers import slow_oracles as slow
from tests.helpers.cases import block_of, value
from udfs.block import Block
from udfs.compute import compute_metrics, compute_pair_metrics
from udfs.conventions import Conventions
from udfs.exposure import Exposure
from udfs.inversions import count_pair_orders
from udfs.lists import build_block
from udfs.ragged import Ragged
from udfs.registry import METRICS, parse_metrics

grades = st.sampled_from([None, -1.0, 0.0, 0.3, 1.0, 1.0, 2.0, 3.0, 5.0])
lists = st.lists(st.lists(grades, max_size=30), min_size=1, max_size=6)


def listed(rankings: list[str], grades: dict[str, float], category: dict[str, int] | None = None) -> Block:
    """Rankings of single letters as a block, all with the same labels."""
    ragged = Ragged.of_lengths([len(ranking) for ranking in rankings])
    letters = "".join(rankings)
    kinds = category or {}
    block, _ = build_block(
        ragged,
        np.array([ord(letter) for letter in letters], dtype=np.int64),
        np.array([grades.get(letter, np.nan) for letter in letters], dtype=np.float64),
        Ragged.of_lengths([len(grades)] * len(rankings)),
        np.array(list(grades.values()) * len(rankings), dtype=np.float64),
        row_data=dict.fromkeys(
            ("category", "subtopics"), np.array([kinds.get(letter, -1) for letter in letters], dtype=np.int64)
        ),
        label_data={"subtopics": np.array([kinds.get(d, -1) for d in grades] * len(rankings), dtype=np.int64)},
    )
    return block


def between(metric: str, first: list[str], second: list[str], grades: dict[str, float] | None = None) -> list[float]:
    (spec,) = parse_metrics([metric])
    given_grades = grades or {}
    blocks = listed(first, given_grades), listed(second, given_grades)
    return [float(x) for x in compute_pair_metrics(*blocks, [spec], Conventions())[spec.key]]


@given(lists, st.integers(1, 12))
def test_err_is_its_formula(ranked: list[list[float | None]], k: int) -> None:
    got = compute_metrics(block_of(ranked, [[1.0]] * len(ranked)), parse_metrics([f"err(gmax=3)@{k}"]), Conventions())
    for list_, ours in zip(ranked, got[f"err_gmax_3_at_{k}"], strict=True):
        assert ours == pytest.approx(slow.err(list_, 3, k), abs=1e-12)


def test_err_worked_example() -> None:
    # Grades 3, 2, 4 of 4: stop chances 7/16, 3/16, 15/16.
    expected = 7 / 16 + 9 / 16 * 3 / 16 / 2 + 9 / 16 * 13 / 16 * 15 / 16 / 3
    assert value("err(gmax=4)@3", [3, 2, 4], [3, 2, 4]) == pytest.approx(expected, abs=1e-12)


def test_err_of_one_perfect_document_is_below_one() -> None:
    assert value("err(gmax=4)", [4], [4]) == pytest.approx(15 / 16)


@given(lists, st.lists(st.sampled_from([1.0, 2.0, 0.5, 0.0, -1.0]), max_size=5), st.integers(1, 40))
def test_q_measure_is_its_formula(ranked: list[list[float | None]], missed: list[float], k: int) -> None:
    labels = [[g for g in list_ if g is not None] + missed for list_ in ranked]
    for cut, spec in zip((False, True), parse_metrics([f"q_measure@{k}", f"q_measure(norm=cut)@{k}"]), strict=True):
        got = compute_metrics(block_of(ranked, labels), [spec], Conventions())[spec.key]
        for list_, all_labels, ours in zip(ranked, labels, got, strict=True):
            if any(label > 0 for label in all_labels):
                assert ours == pytest.approx(slow.q_measure(list_, all_labels, k, cut=cut), abs=1e-12)
            else:
                assert math.isnan(ours)


def test_q_measure_worked_example() -> None:
    # Gains 3, 0, 2 of an ideal 3, 2, 1: ratios (1+3)/(1+3) at rank 1 and (2+5)/(3+6) at rank 3, R = 3.
    assert value("q_measure", [3, 0, 2], [3, 2, 1]) == pytest.approx((1 + 7 / 9) / 3, abs=1e-12)


def test_q_measure_of_binary_labels_is_not_average_precision() -> None:
    # At rank 2 the ratio is (1 + 1) / (2 + 1), not 1/2: the blending forgives a late first hit.
    assert value("q_measure", [0, 1], [1]) == pytest.approx(2 / 3)


@given(st.permutations("abcdefgh"), st.data(), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.integers(1, 9))
def test_alpha_ndcg_is_its_formula(order: list[str], data: st.DataObject, alpha: float, k: int) -> None:
    category = {d: data.draw(st.integers(0, 2)) for d in "abcdefgh"}
    relevant = {d: float(data.draw(st.booleans())) for d in "abcdefgh"}
    shown = "".join(order[: data.draw(st.integers(0, 8))])
    subtopic = {d: str(category[d]) for d in relevant if relevant[d]}
    spec = f"alpha_ndcg(alpha={alpha})@{k}"
    (got,) = compute_metrics(listed([shown], relevant, category), parse_metrics([spec]), Conventions()).values()
    if subtopic:
        assert got[0] == pytest.approx(slow.alpha_ndcg(shown, subtopic, alpha, k), abs=1e-12)
    else:
        assert math.isnan(got[0])


@pytest.mark.skipif(sys.platform != "linux", reason="pyndeval is built for Linux alone")
@given(st.permutations("abcdefghijkl"), st.data(), st.sampled_from([5, 10]))
def test_alpha_ndcg_is_that_of_ndeval(order: list[str], data: st.DataObject, k: int) -> None:
    import pyndeval

    category = {d: data.draw(st.integers(0, 3)) for d in order}
    relevant = {d: float(data.draw(st.booleans())) for d in order}
    shown = order[: data.draw(st.integers(1, 12))]
    judged = [pyndeval.SubtopicQrel("q", str(category[d]), d, 1) for d in order if relevant[d]]
    ranked = [pyndeval.ScoredDoc("q", d, -place) for place, d in enumerate(shown)]
    assume(judged)
    theirs = pyndeval.ndeval(judged, ranked, measures=[f"alpha-nDCG@{k}"])["q"][f"alpha-nDCG@{k}"]
    (got,) = compute_metrics(
        listed(["".join(shown)], relevant, category), parse_metrics([f"alpha_ndcg@{k}"]), Conventions()
    ).values()
    assert got[0] == pytest.approx(theirs, abs=1e-9)


def test_alpha_ndcg_worked_example() -> None:
    # Two documents of topic 0, then one of topic 1: gains 1, ½, 1 against the ideal 1, 1, ½.
    block = listed(["abc"], {"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 0, "b": 0, "c": 1})
    gains = 1 + 0.5 / math.log2(3) + 1 / 2
    ideal = 1 + 1 / math.log2(3) + 0.5 / 2
    (got,) = compute_metrics(block, parse_metrics(["alpha_ndcg@3"]), Conventions()).values()
    assert got[0] == pytest.approx(gains / ideal, abs=1e-12)


def test_subtopic_recall_counts_topics_not_documents() -> None:
    block = listed(["abcd"], dict.fromkeys("abcde", 1.0), {"a": 0, "b": 0, "c": 1, "e": 2})
    got = compute_metrics(block, parse_metrics(["subtopic_recall@2", "subtopic_recall@4"]), Conventions())
    assert [got["subtopic_recall_at_2"][0], got["subtopic_recall_at_4"][0]] == pytest.approx([1 / 3, 2 / 3])


def test_intra_list_diversity_is_the_share_of_mixed_pairs() -> None:
    block = listed(["abcd", "a", "ae"], {"a": 1.0}, {"a": 0, "b": 0, "c": 1, "d": 2})
    got = compute_metrics(block, parse_metrics(["intra_list_diversity@4", "intra_list_diversity@2"]), Conventions())
    assert got["intra_list_diversity_at_4"][0] == pytest.approx(5 / 6)
    assert got["intra_list_diversity_at_2"][0] == 0.0
    assert np.isnan(got["intra_list_diversity_at_4"][1:]).all()  # one document; one with a category


def test_catalog_coverage_is_the_share_that_was_shown() -> None:
    exposure = Exposure(
        documents=Ragged.of_lengths([4, 1, 2]),
        list_count=np.array([1, 2, 1, 1, 1, 1, 1]),
        in_catalogue=np.array([True, True, True, False, False, True, True]),
        catalogue_size=10,
        lists=np.array([2, 1, 1]),
    )
    coverage = METRICS["catalog_coverage"]
    assert coverage.scope == "system"
    assert coverage.kernel(exposure, 5) == pytest.approx([0.3, 0.0, 0.2])


@given(st.permutations("abcdefghij"), st.permutations("defghijklm"), st.data(), st.sampled_from([0.1, 0.5, 0.9, 0.98]))
def test_rbo_is_its_formula(one: list[str], two: list[str], data: st.DataObject, p: float) -> None:
    first = "".join(one[: data.draw(st.integers(1, 10))])
    second = "".join(two[: data.draw(st.integers(1, 10))])
    ahead, back = between(f"rbo(p={p})", [first], [second]), between(f"rbo(p={p})", [second], [first])
    assert ahead == pytest.approx([slow.rbo(first, second, p)], abs=1e-12)
    assert ahead == back


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("abcde", "abcde", 1.0), ("abcde", "bacde", 0.9), ("abc", "xyz", 0.0), ("abc", "", 0.0), ("a", "abc", 1.0)],
)
def test_rbo_worked_examples(first: str, second: str, expected: float) -> None:
    assert between("rbo", [first], [second]) == pytest.approx([expected], abs=1e-12)


def test_rbo_of_two_empty_lists_is_undefined() -> None:
    assert math.isnan(between("rbo", [""], [""])[0])


def test_rbo_at_k_is_that_of_the_two_tops() -> None:
    assert between("rbo@3", ["abcde"], ["bacxy"]) == between("rbo", ["abc"], ["bac"])


@given(st.permutations("abcdefgh"), st.permutations("defghijk"))
def test_rank_tau_compares_common_documents(one: list[str], two: list[str]) -> None:
    common = [two.index(d) for d in one if d in two]
    rising, falling = slow.tau(common)
    expected = [(rising - falling) / (rising + falling)]
    first, second = "".join(one), "".join(two)
    assert between("rank_tau", [first], [second]) == pytest.approx(expected)
    assert between("rank_tau", [first], [second]) == between("rank_tau", [second], [first])


def test_rank_tau_needs_two_common_documents() -> None:
    assert math.isnan(between("rank_tau", ["abc"], ["cde"])[0])


@given(st.permutations("abcdefghij"), st.permutations("fghijklmno"), st.sets(st.sampled_from("abcdefghijklmno")))
def test_retention_is_its_formula(later: list[str], earlier: list[str], relevant: set[str]) -> None:
    labels = {d: float(d in relevant) for d in "abcdefghijklmno"}
    got = between("retention(from=6)@4", ["".join(later)], ["".join(earlier)], labels)
    if relevant & set(earlier[:6]):
        assert got == pytest.approx([slow.retention(later, earlier, relevant, 6, 4)])
    else:
        assert math.isnan(got[0])


def test_retention_worked_example() -> None:
    # The earlier top 4 holds three relevant documents; the later top 2 keeps one of them, and finds z by itself.
    labels = dict.fromkeys("abcz", 1.0) | {"x": 0.0}
    assert between("retention(from=4)@2", ["zaxbc"], ["axbcz"], labels) == pytest.approx([1 / 3])


@given(st.lists(st.lists(st.integers(0, 9) | st.integers(0, 1000), max_size=60), min_size=1, max_size=6))
def test_pair_orders_counts_what_looking_at_each_pair_does(values: list[list[int]]) -> None:
    flat = np.array([v for list_ in values for v in list_], dtype=np.int64)
    rising, falling = count_pair_orders(Ragged.of_lengths([len(list_) for list_ in values]), flat)
    assert [(int(r), int(f)) for r, f in zip(rising, falling, strict=True)] == [slow.tau(list_) for list_ in values]


def test_decisions_are_right_wrong_or_unknown() -> None:
    block = listed(["a", "", "", ""], {"a": 1.0})
    block = Block(
        block.ranked,
        block.grade,
        block.labelled,
        block.labels,
        list_data={
            "expert": np.array([0, 1, 2, -1]),
            "optimal_expert": np.array([0, 2, -1, 1]),
            "retrieved": np.array([1.0, 0.0, 0.0, np.nan]),
            "retrieval_needed": np.array([0.0, 0.0, 1.0, 0.0]),
        },
    )
    got = compute_metrics(
        block, parse_metrics(["routing_accuracy", "gate_efficiency"]), Conventions(nothing_returned="skip")
    )
    np.testing.assert_array_equal(got["routing_accuracy"], [1.0, 0.0, np.nan, np.nan])
    np.testing.assert_array_equal(got["gate_efficiency"], [0.0, 1.0, 0.0, np.nan])
