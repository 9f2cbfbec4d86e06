"""A hash table of 64-bit keys, built without sorting: few slots have two keys.

Keys that are near each other share their first bits, so that lookups mostly stay in one part of memory. The table is
not initialised: a slot counts only where its key is equal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from udfs.ragged import Ints
from udfs.sorting import sort_distinct

Keys = npt.NDArray[np.uint64]

SLOTS_PER_KEY = 4
MOST_BITS = 24  # of a slot number: a table of at most 64 MB


class Slots:
    """The positions of keys."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        bits = min((SLOTS_PER_KEY * len(keys)).bit_length(), MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._table = np.empty(1 << bits, dtype=np.int32)
        slot, place = self._slot(keys), np.arange(len(keys), dtype=np.int32)
        self._table[slot[::-1]] = place[::-1]  # the first key of a slot stays
        self._first = self._table[slot]
        later = np.flatnonzero(self._first != place)
        other = keys[self._first[later]] != keys[later]
        self._again = later[~other]
        apart = later[other]  # their slot is taken by another key
        self._apart = apart[np.argsort(keys[apart], kind="stable")]

    def repeated(self) -> Ints:
        """The positions of all keys that occur more than once."""
        keys = self.keys[self._apart]
        same = np.flatnonzero(keys[1:] == keys[:-1])
        return sort_distinct(
            np.concatenate((self._again, self._first[self._again], self._apart[same], self._apart[same + 1]))
        )

    def find(self, keys: Keys) -> Ints:
        """Per key, the position of the first equal one, or −1."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        at = np.minimum(self._table[self._slot(keys)].view(np.uint32), len(self.keys) - 1).astype(np.int64)
        position = np.where(self.keys[at] == keys, at, -1)
        if len(self._apart):
            crowded = np.zeros(len(self.keys), dtype=np.bool_)
            crowded[self._first[self._apart]] = True
            missed = np.flatnonzero((position < 0) & crowded[at])
            apart = self.keys[self._apart]
            near = np.minimum(np.searchsorted(apart, keys[missed]), len(apart) - 1)
            same = apart[near] == keys[missed]
            position[missed[same]] = self._apart[near[same]]
        return position

    def _slot(self, keys: Keys) -> Ints:
        return (keys >> self._shift).view(np.int64)
