"""Equal keys are found whether they spread over the slots or crowd into one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udfs.slots
from udfs.slots import Keys, Slots

ANY_KEY = st.integers(0, 2**64 - 1)
CROWDED = st.integers(0, 20)  # all in the first slot
KEYS = st.lists(ANY_KEY | CROWDED, max_size=60).map(lambda keys: np.array(keys, dtype=np.uint64))


def slow_find(keys: Keys, others: Keys) -> list[int]:
    first: dict[int, int] = {}
    for at, key in enumerate(keys.tolist()):
        first.setdefault(key, at)
    return [first.get(key, -1) for key in others.tolist()]


def slow_repeated(keys: Keys) -> list[int]:
    return [at for at, key in enumerate(keys) if (keys == key).sum() > 1]


@given(KEYS, KEYS)
def test_every_key_is_found_where_it_first_stands(keys: Keys, others: Keys) -> None:
    both = np.concatenate((keys, others))
    assert Slots(keys).find(both).tolist() == slow_find(keys, both)
    assert Slots(keys).repeated().tolist() == slow_repeated(keys)


@pytest.mark.parametrize("most_bits", [1, 4, 24])
def test_a_table_that_is_too_small_for_its_keys_finds_them_all_the_same(
    monkeypatch: pytest.MonkeyPatch, most_bits: int
) -> None:
    monkeypatch.setattr(udfs.slots, "MOST_BITS", most_bits)
    random = np.random.default_rng(1)
    keys = random.integers(0, 2**64, 3_000, dtype=np.uint64)
    keys[2_000:] = keys[:1_000]
    both = np.concatenate((keys, random.integers(0, 2**64, 3_000, dtype=np.uint64)))
    assert Slots(keys).find(both).tolist() == slow_find(keys, both)
    assert Slots(keys).repeated().tolist() == slow_repeated(keys)
