"""What two ranked lists of the same query have in common, over many pairs of lists at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.block import Block
from udfs.ragged import Ints, Ragged


@dataclass(frozen=True, eq=False)
class Shared:
    """The documents that stand in both lists of a pair, in order of their ids."""

    lists: Ragged
    row: Ints  # where each stands in the first block
    other_row: Ints  # and in the second
    rank: Ints  # its rank in the first list
    other_rank: Ints  # and in the second


def shared(block: Block, other: Block) -> Shared:
    """The documents common to list i of `block` and list i of `other`, for every i."""
    return block.once(("shared", other), lambda: _shared(block, other))


def _shared(block: Block, other: Block) -> Shared:
    owner = np.concatenate((block.ranked.owner, other.ranked.owner))
    doc = np.concatenate((block.row_data["doc"], other.row_data["doc"]))
    # A list holds a document once, so equal neighbours are one from each side, the first block's first.
    order = np.lexsort((doc, owner))
    both = np.flatnonzero((doc[order][1:] == doc[order][:-1]) & (owner[order][1:] == owner[order][:-1]))
    row, other_row = order[both], order[both + 1] - block.ranked.rows
    lists = Ragged.of_lengths(np.bincount(block.ranked.owner[row], minlength=block.size))
    return Shared(lists, row, other_row, block.ranked.place[row], other.ranked.place[other_row])
