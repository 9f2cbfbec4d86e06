"""Categories of documents, which may have several: sets of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.ragged import Ints, Ragged

NONE = -1  # the number of a document without a category


@dataclass(frozen=True, eq=False)
class CategorySets:
    """Sets of categories by number; the members of a set are distinct, and in the order of their texts."""

    sets: Ragged
    member: Ints

    def expand(self, number: Ints) -> tuple[Ints, Ints]:
        """Per member of the sets with these numbers, the index of its set among them, and the member."""
        filled = np.flatnonzero(number >= 0)
        chosen = number[filled]
        parts = Ragged.of_lengths(self.sets.lengths[chosen])
        at = np.repeat(self.sets.offsets[:-1][chosen], parts.lengths) + parts.place - 1
        return filled[parts.owner], self.member[at]


def expand_categories(sets: CategorySets | None, number: Ints) -> tuple[Ints, Ints]:
    """Per category of documents with these numbers, the index of the document and the category.

    Without sets, a number is the only category of its document.
    """
    if sets is not None:
        return sets.expand(number)
    rows = np.flatnonzero(number >= 0)
    return rows, number[rows]
