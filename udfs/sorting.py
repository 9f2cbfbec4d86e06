"""Sort many integers fast, with NumPy's sort of single numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from udfs.ragged import Ints, Ragged

_KEY_BITS = 63
Key = Ints | npt.NDArray[np.bool_]
Number = TypeVar("Number", np.int64, np.uint64)


def sort_distinct(numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The distinct numbers in order; `np.unique` of NumPy 2.3 hashes them, which takes a hundred times as long."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def sort_in_groups(group: Ints, hashes: Ints, ties: Sequence[Key]) -> Ints:
    """The order by a small number, a hash, and then the ties, of which the last decides first as in `np.lexsort`.

    Sorted by one number that has all of the group and the upper bits of the hash, as many as it can hold; only what
    that leaves in disorder is sorted by everything. So the order of a group does not depend on the other groups.
    """
    width = int(group.max(initial=0)).bit_length()
    upper = ((hashes.view(np.uint64) ^ np.uint64(1 << 63)) >> np.uint64(width + 1)).astype(np.int64)
    key = (group << (_KEY_BITS - width)) | upper
    order = np.argsort(key)
    groups = Ragged.of_sorted(key[order])
    several = np.flatnonzero(groups.lengths[groups.owner] > 1)
    rows = order[several]
    order[several] = rows[np.lexsort([*(tie[rows] for tie in ties), hashes[rows], key[rows]])]
    return order
