"""Flat arrays with borders."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from udfs.lists import build_block
from udfs.match import MIX, keep_best_labels, match_labels, take_grades
from udfs.ragged import Ragged

lengths = st.lists(st.integers(0, 9), max_size=12)


@given(lengths)
def test_running_results_of_a_list_depend_on_that_list_alone(sizes: list[int]) -> None:
    values = np.random.default_rng(sum(sizes)).standard_normal(sum(sizes)) * 1e8
    ragged = Ragged.of_lengths(sizes)
    together = ragged.running(np.add, values)
    alone = [np.cumsum(values[a:b]) for a, b in zip(ragged.offsets, ragged.offsets[1:], strict=False)]
    assert np.array_equal(together, np.concatenate([np.empty(0), *alone]))


@given(lengths, st.integers(1, 12))
def test_slices_cover_every_list_once_and_keep_to_the_limit(sizes: list[int], limit: int) -> None:
    ragged = Ragged.of_lengths(sizes)
    parts = list(ragged.slices(limit))
    assert [g for part in parts for g in range(part.start, part.stop)] == list(range(len(sizes)))
    for part in parts:
        assert sum(sizes[part]) <= limit or part.stop - part.start == 1


def test_a_document_that_comes_again_is_dropped_at_its_later_place() -> None:
    lists = Ragged.of_lengths([4, 2])
    doc = np.array([8, 8, 5, 6, 5, 8])
    grade = np.array([1.0, 1.0, 0.5, np.nan, 2.0, 3.0])
    none = Ragged.of_lengths([0, 0])
    block, duplicates = build_block(lists, doc, grade, none, np.empty(0))
    assert duplicates.tolist() == [1, 0]
    assert block.ranked.lengths.tolist() == [3, 2]
    assert block.row_data["doc"].tolist() == [8, 5, 6, 5, 8]
    assert np.array_equal(block.grade, [1.0, 0.5, np.nan, 2.0, 3.0], equal_nan=True)


def unfold(doc: int) -> int:
    """Documents some of which differ only in what keys leave out, so that keys clash."""
    wide = abs(doc) * (pow(int(MIX), -1, 2**64) if doc % 2 else 1) % 2**64
    return int(np.array([wide], dtype=np.uint64).view(np.int64)[0])


@given(
    st.lists(st.lists(st.integers(-3, 3), max_size=5), max_size=6),
    st.lists(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), max_size=5), max_size=6),
)
def test_matching_gives_each_document_the_best_label_of_its_own_query(
    ranked: list[list[int]], labels: list[list[tuple[int, int]]]
) -> None:
    labels = (labels + [[]] * len(ranked))[: len(ranked)]
    labelled = Ragged.of_lengths([len(of) for of in labels])
    label_doc = np.array([unfold(doc) for of in labels for doc, _ in of], dtype=np.int64)
    label = np.array([grade for of in labels for _, grade in of], dtype=np.float64)
    mixed = np.random.default_rng(labelled.rows).permutation(labelled.rows)
    kept = mixed[keep_best_labels(labelled.owner[mixed], labelled.size, label_doc[mixed], label[mixed])]
    once = Ragged.of_lengths(np.bincount(labelled.owner[kept], minlength=labelled.size))
    lists = Ragged.of_lengths([len(of) for of in ranked])
    doc = np.array([unfold(doc) for of in ranked for doc in of], dtype=np.int64)
    best: list[dict[int, int]] = []
    for of in labels:
        grades: dict[int, int] = {}
        for d, grade in of:
            grades[unfold(d)] = max(grade, grades.get(unfold(d), 0))
        best.append(grades)
    expected = [best[g].get(unfold(d), np.nan) for g, of in enumerate(ranked) for d in of]
    for rows in (kept, np.sort(kept)):  # as they are handed on, and as they came
        matched = take_grades(label[rows], match_labels(lists, doc, once, label_doc[rows]))
        assert np.array_equal(matched, np.array(expected, dtype=np.float64), equal_nan=True)
