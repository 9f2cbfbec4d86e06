"""Ids as numbers: equal where the ids are, wherever they stand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from udfs.ragged import Ragged
from udfs.tables import encode_ids, hash_ids, hash_texts

texts = st.text(st.characters(codec="utf-8"), max_size=30)


@given(st.lists(texts | st.sampled_from(["", "\0", "\0\0", "12345678", "123456789", "12345678\0"]), max_size=40))
def test_fingerprints_are_equal_exactly_where_texts_are(values: list[str]) -> None:
    array = pa.array(["first", *values], pa.large_string())
    hashes = hash_texts(array).tolist()
    assert len(set(hashes)) == len({"first", *values})
    assert hash_texts(array.slice(1)).tolist() == hashes[1:]  # neither place nor offset matters


def test_similar_ids_have_different_fingerprints() -> None:
    ids = [f"doc-{i}" for i in range(200_000)] + [f"product/{i:012d}/variant-{i % 7}" for i in range(200_000)]
    assert len(np.unique(hash_texts(pa.array(ids, pa.large_string())))) == len(ids)


def test_whole_numbers_and_their_texts_are_the_same_ids() -> None:
    numbers, words = pa.chunked_array([[1, 22]]), pa.chunked_array([["22", "1"]])
    one, two = hash_ids(numbers, words)
    assert one.tolist() == two.tolist()[::-1]
    assert hash_ids(numbers)[0].tolist() == [1, 22]


def test_codes_come_in_order_of_first_appearance() -> None:
    (first, second), names = encode_ids(pa.chunked_array([["b", "b", "a"], ["b"]]), pa.chunked_array([["c", "a"]]))
    assert (first.tolist(), second.tolist(), names.to_pylist()) == ([0, 0, 1, 0], [2, 1], ["b", "a", "c"])


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, np.inf, -np.inf, 2.5]), max_size=9), max_size=9))
def test_sorting_stays_within_lists_and_keeps_equals_in_order(lists: list[list[float]]) -> None:
    ragged = Ragged.of_lengths([len(values) for values in lists])
    flat = np.array([value for values in lists for value in values])
    assert ragged.argsort(flat).tolist() == np.lexsort((flat, ragged.owner)).tolist()


@given(st.lists(st.lists(st.integers(0, 3), max_size=9), max_size=9))
def test_repeats_count_earlier_rows_of_the_same_list(lists: list[list[int]]) -> None:
    ragged = Ragged.of_lengths([len(values) for values in lists])
    flat = np.array([value for values in lists for value in values], dtype=np.int64)
    expected = [values[:i].count(value) for values in lists for i, value in enumerate(values)]
    assert ragged.repeats(flat).tolist() == expected
