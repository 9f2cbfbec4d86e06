"""Rows that share a hash, and hashes of several numbers, as NumPy arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.ragged import Bools, Ints

MIXER = np.int64(-7046029254386353131)  # 2^64 over the golden ratio: spreads small numbers over all bits


def mix_numbers(one: Ints, two: Ints) -> Ints:
    """One number for each pair of numbers."""
    with np.errstate(over="ignore"):
        mixed = (one ^ (two * MIXER)) * MIXER
    return mixed ^ (mixed >> 29)


def find_repeated(hashes: Ints) -> Ints:
    """The rows whose hash other rows have too, and few others.

    A hash gives its lower bits for the number of its row, so that one array is sorted and nothing else is moved.
    """
    bits = max(len(hashes) - 1, 1).bit_length()
    lower = (1 << bits) - 1
    packed = np.sort((hashes & ~lower) | np.arange(len(hashes)))
    differs = np.ones(len(packed) + 1, dtype=np.bool_)
    differs[1:-1] = np.diff(packed >> bits) != 0
    return packed[~(differs[1:] & differs[:-1])] & lower


def is_among(numbers: Ints, chosen: Ints) -> Bools:
    """Whether each number is one of the chosen ones; `np.isin` sorts both."""
    if not len(chosen):
        return np.zeros(len(numbers), dtype=np.bool_)
    return np.asarray(pc.is_in(pa.array(numbers), pa.array(chosen)).to_numpy(zero_copy_only=False))


def is_among_sorted(numbers: Ints, chosen: Ints) -> Bools:
    """`is_among` for sorted chosen numbers: faster where there are few others, since it builds no hash table."""
    if not len(chosen):
        return np.zeros(len(numbers), dtype=np.bool_)
    place = np.minimum(np.searchsorted(chosen, numbers), len(chosen) - 1)
    return np.equal(chosen[place], numbers)
