"""What must hold for any input at all."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.helpers.cases import block_of, random_case, value
from udfs.block import Block
from udfs.compute import compute_metrics
from udfs.conventions import Conventions
from udfs.evaluator import evaluate_tables
from udfs.registry import METRICS, MetricSpec, parse_metric, parse_metrics

UNBOUNDED = {"dcg", "kendall_tau", "novelty"}
LISTED = [m for m in METRICS.values() if m.scope == "list" and "decisions" not in m.needs]
GRADES = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, 3.0])
WITH_HOLES = st.none() | st.sampled_from([-1.0]) | GRADES


def specs(k: int | None) -> tuple[MetricSpec, ...]:
    cut = "" if k is None else f"@{k}"
    return parse_metrics([m.name + ("" if m.cutoff == "none" else cut) for m in LISTED])


def described(ranked: list[list[float | None]], labels: list[list[float]]) -> Block:
    """A block in which documents have a category and a popularity too."""
    plain = block_of(ranked, labels)
    rows, tags = np.arange(plain.ranked.rows), np.arange(plain.labelled.rows)
    return Block(
        plain.ranked,
        plain.grade,
        plain.labelled,
        plain.labels,
        {"category": rows % 3 - 1, "subtopics": rows % 3 - 1, "popularity": (rows % 5) / 100, "doc": rows},
        {"subtopics": tags % 3 - 1},
    )


@given(st.lists(st.lists(WITH_HOLES, max_size=25), min_size=1, max_size=5), st.integers(1, 30) | st.none())
def test_every_bounded_metric_lies_between_0_and_1(ranked: list[list[float | None]], k: int | None) -> None:
    # The labels hold the retrieved ones, as they always do, with their categories in the same order.
    labels = [[g for g in grades if g is not None] + [2.0] for grades in ranked]
    for key, values in compute_metrics(block_of_categories(ranked, labels), specs(k), Conventions(max_grade=3)).items():
        if not any(key.startswith(name) for name in UNBOUNDED):
            numbers = values[~np.isnan(values)]
            assert ((numbers >= 0) & (numbers <= 1 + 1e-12)).all(), key


def block_of_categories(ranked: list[list[float | None]], labels: list[list[float]]) -> Block:
    """As `described`, with a labelled document's category the same on both sides."""
    block = described(ranked, labels)
    judged = np.flatnonzero(block.judged)
    category = np.array(block.label_data["subtopics"])
    own = np.flatnonzero(block.labelled.place <= block.ranked.counts(block.judged)[block.labelled.owner])
    category[own] = block.row_data["category"][judged]
    return Block(block.ranked, block.grade, block.labelled, block.labels, block.row_data, {"subtopics": category})


@given(st.lists(GRADES, min_size=1, max_size=25))
def test_a_perfect_ranking_scores_1(labels: list[float]) -> None:
    assume(any(labels))
    best = sorted(labels, reverse=True)
    for metric in ("ndcg", "ndcg(gain=linear)@7", "map", "rprec", "mrr", "q_measure", "bpref", "recall"):
        assert value(metric, list(best), labels) == pytest.approx(1.0, abs=1e-12)


@given(st.lists(WITH_HOLES, max_size=12), st.lists(WITH_HOLES, max_size=5), st.integers(1, 6))
def test_appending_below_k_changes_no_metric_at_k(top: list[float | None], more: list[float | None], k: int) -> None:
    assume(len(top) >= k)
    metrics = [spec for spec in specs(k) if spec.metric.cutoff != "none"]
    labels = [g for g in top + more if g is not None] + [1.0]
    short = compute_metrics(described([top], [labels]), metrics, Conventions(max_grade=3))
    long = compute_metrics(described([top + more], [labels]), metrics, Conventions(max_grade=3))
    for key in short:
        np.testing.assert_array_equal(short[key], long[key], err_msg=key)


def swapped(grades: list[float], at: int) -> list[float]:
    return [*grades[:at], grades[at + 1], grades[at], *grades[at + 2 :]]


def discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


@given(st.lists(GRADES, min_size=2, max_size=12), st.data())
def test_moving_a_larger_gain_up_raises_ndcg_by_exactly_its_share(grades: list[float], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(grades) - 2))
    assume(grades[at] < grades[at + 1])
    k = data.draw(st.integers(at + 1, 13))
    before, after = value(f"ndcg@{k}", list(grades), grades), value(f"ndcg@{k}", list(swapped(grades, at)), grades)
    ideal = sum((2**g - 1) * discount(i + 1) for i, g in enumerate(sorted(grades, reverse=True)[:k]))
    gain = 2 ** grades[at + 1] - 2 ** grades[at]
    if k >= at + 2:
        assert after - before == pytest.approx((discount(at + 1) - discount(at + 2)) * gain / ideal, abs=1e-12)
    else:  # across the border of k
        assert after - before <= discount(k) * (2 ** grades[at + 1] - 1) / ideal + 1e-12
    assert after > before


@given(st.integers(0, 8))
def test_a_swap_nearer_the_top_moves_ndcg_more(at: int) -> None:
    def move(place: int) -> float:
        grades = [0.0] * 12
        grades[place + 1] = 1.0
        return value("ndcg@12", list(swapped(grades, place)), [1.0, 1.0]) - value("ndcg@12", list(grades), [1.0, 1.0])

    assert move(at) > move(at + 1)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 30), max_size=4))
def test_how_lists_are_grouped_into_blocks_changes_no_bit(seed: int, cuts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    ranked: list[list[float | None]] = [
        [None if rng.random() < 0.2 else float(rng.normal(1, 1)) for _ in range(int(rng.integers(0, 40)))]
        for _ in range(30)
    ]
    labels = [[float(g) for g in grades if g is not None] + [0.7] for grades in ranked]
    conventions = Conventions(max_grade=3)
    metrics = specs(7) + specs(None)
    whole = compute_metrics(rich(ranked, labels, slice(0, 30)), metrics, conventions)
    borders = [0, *sorted(cuts), 30]
    for start, stop in itertools.pairwise(borders):
        part = compute_metrics(rich(ranked, labels, slice(start, stop)), metrics, conventions)
        for key in whole:
            assert part[key].tobytes() == whole[key][start:stop].tobytes(), key


def rich(ranked: list[list[float | None]], labels: list[list[float]], part: slice) -> Block:
    """The lists of `part`, with categories and popularities that depend on the list alone."""
    block = block_of(ranked[part], labels[part])
    place, tag = block.ranked.place, block.labelled.place
    row_data = {"category": place % 4 - 1, "subtopics": place % 4 - 1, "popularity": 1.0 / (place + 1.5), "doc": place}
    return Block(block.ranked, block.grade, block.labelled, block.labels, row_data, {"subtopics": tag % 4 - 1})


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 5]), st.booleans())
def test_the_order_of_the_rows_changes_no_bit(seed: int, first: int, gaps: bool) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 30, 6)
    ranks = [first + (np.sort(rng.integers(0, 40, n)) if gaps else np.arange(n)) for n in lengths]
    rankings = pa.table(
        {
            "system": [f"s{n % 2}" for n, size in enumerate(lengths) for _ in range(size)],
            "query_id": [f"q{n // 2}" for n, size in enumerate(lengths) for _ in range(size)],
            "doc_id": rng.integers(0, 20, lengths.sum()).astype(str),
            "rank": np.concatenate(ranks),
        }
    )
    doc = np.arange(20).astype(str)
    labels = pa.table(
        {"query_id": np.repeat(["q0", "q1", "q2"], 20), "doc_id": np.tile(doc, 3), "grade": np.tile(np.arange(4.0), 15)}
    )
    names = ["ndcg@10", "map", "rbp", "mrr(rel=3)"]
    keys = [("system", "ascending"), ("query_id", "ascending")]
    straight = evaluate_tables(rankings, labels, names).sort_by(keys)
    mixed = evaluate_tables(rankings.take(pa.array(rng.permutation(len(rankings)))), labels, names).sort_by(keys)
    assert straight.equals(mixed)


def test_one_large_list_is_scored_like_any_other() -> None:
    case = random_case(3, queries=1, longest=2)
    case.run = {"q0": {f"d{i}": float(-i) for i in range(100_000)}}
    case.labels = {"q0": {f"d{i}": i % 3 for i in range(0, 100_000, 7)}}
    row = case.evaluate(["ndcg@10", "map", "kendall_tau", "err(gmax=2)", "q_measure"], Conventions())["q0"]
    assert row["ndcg_at_10"] == pytest.approx(value("ndcg@10", [0, *[None] * 6, 1], [2] * 10))
    assert all(row[parse_metric(name).key] is not None for name in ("map", "kendall_tau", "q_measure"))
