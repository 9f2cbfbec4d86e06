"""Equal keys found without sorting: each key has a slot of a table, and few slots have two keys.

Keys spread over 64 bits, and those that stand near each other share their first bits, so that looking one up mostly
stays in one part of memory. What a slot held before is never asked for: a key is found only where it is equal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from udfs.ragged import Ints

Keys = npt.NDArray[np.uint64]

SLOTS_PER_KEY = 4
MOST_BITS = 24  # of a slot's number: a table of 64 MB, however many keys there are


class Slots:
    """Where each of some keys stands."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        bits = min((SLOTS_PER_KEY * len(keys)).bit_length(), MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._table = np.empty(1 << bits, dtype=np.int32)
        slot, place = self._slot(keys), np.arange(len(keys), dtype=np.int32)
        self._table[slot[::-1]] = place[::-1]  # of several in one slot the first stays
        self._first = self._table[slot]
        later = np.flatnonzero(self._first != place)
        other = keys[self._first[later]] != keys[later]
        self._again = later[~other]
        apart = later[other]  # another key has their slot
        self._apart = apart[np.argsort(keys[apart], kind="stable")]

    def repeated(self) -> Ints:
        """The places of all keys that stand there more than once."""
        keys = self.keys[self._apart]
        same = np.flatnonzero(keys[1:] == keys[:-1])
        return np.unique(
            np.concatenate((self._again, self._first[self._again], self._apart[same], self._apart[same + 1]))
        )

    def find(self, wanted: Keys) -> Ints:
        """Per wanted key, the place of the first that is equal; −1 where there is none."""
        if not len(self.keys):
            return np.full(len(wanted), -1)
        at = np.minimum(self._table[self._slot(wanted)].view(np.uint32), len(self.keys) - 1).astype(np.int64)
        found = np.where(self.keys[at] == wanted, at, -1)
        if len(self._apart):
            crowded = np.zeros(len(self.keys), dtype=np.bool_)
            crowded[self._first[self._apart]] = True
            missed = np.flatnonzero((found < 0) & crowded[at])
            apart = self.keys[self._apart]
            near = np.minimum(np.searchsorted(apart, wanted[missed]), len(apart) - 1)
            same = apart[near] == wanted[missed]
            found[missed[same]] = self._apart[near[same]]
        return found

    def _slot(self, keys: Keys) -> Ints:
        return (keys >> self._shift).view(np.int64)
