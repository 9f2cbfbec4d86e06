"""Sorting integers fast gives what NumPy's general functions give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.sorting import sort_distinct, sort_in_groups

NUMBERS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-3, 3), max_size=60)


@given(NUMBERS)
def test_distinct_numbers_are_those_of_numpy(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=np.int64)
    assert sort_distinct(values).tolist() == np.unique(values).tolist()
    unsigned = values.view(np.uint64)
    assert sort_distinct(unsigned).tolist() == np.unique(unsigned).tolist()


@given(NUMBERS, st.integers(1, 5), st.integers(0, 1 << 31))
def test_the_order_in_groups_is_that_of_lexsort(numbers: list[int], groups: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    hashes = np.array(numbers, dtype=np.int64)
    group, tie = random.integers(0, groups, len(hashes)), random.permutation(len(hashes))
    order = sort_in_groups(group, hashes, (tie,))
    assert order.tolist() == np.lexsort((tie, hashes, group)).tolist()


@pytest.mark.parametrize("groups", [1, 2, 1 << 20])
def test_hashes_that_differ_in_their_last_bit_are_in_order(groups: int) -> None:
    hashes = np.array([5, 4, -1, -2, 4], dtype=np.int64)
    group = np.array([0, 0, 0, 0, groups - 1])
    tie = np.array([True, False, True, True, False])
    assert sort_in_groups(group, hashes, (tie,)).tolist() == np.lexsort((tie, hashes, group)).tolist()
