"""The documents that two ranked lists of the same query share, over many pairs of lists at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.block import Block
from udfs.ragged import Ints, Ragged


@dataclass(frozen=True, eq=False)
class SharedDocuments:
    """The documents in both lists of a pair, in order of their ids."""

    lists: Ragged
    row: Ints  # of each in the first block
    other_row: Ints  # and in the second
    rank: Ints  # of each in the first list
    other_rank: Ints  # and in the second


def find_shared_documents(block: Block, other: Block) -> SharedDocuments:
    """The documents common to list i of `block` and list i of `other`, for every i."""
    return block.cached(("shared", other), lambda: _match_documents(block, other))


def _match_documents(block: Block, other: Block) -> SharedDocuments:
    owner = np.concatenate((block.ranked.owner, other.ranked.owner))
    doc = np.concatenate((block.row_data["doc"], other.row_data["doc"]))
    # A list has a document once, so equal neighbours come from both sides, the first block's first.
    order = np.lexsort((doc, owner))
    both = np.flatnonzero((doc[order][1:] == doc[order][:-1]) & (owner[order][1:] == owner[order][:-1]))
    row, other_row = order[both], order[both + 1] - block.ranked.rows
    lists = Ragged.of_lengths(np.bincount(block.ranked.owner[row], minlength=block.size))
    return SharedDocuments(
        lists=lists,
        row=row,
        other_row=other_row,
        rank=block.ranked.place[row],
        other_rank=other.ranked.place[other_row],
    )
