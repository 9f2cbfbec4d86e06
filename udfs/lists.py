"""From the rows of ranked lists, in any order, to a `Block`: ranks closed up, duplicates taken out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udfs.block import Array, Block
from udfs.match import keys
from udfs.ragged import Bools, Floats, Ints, Ragged


def assemble(
    lists: Ragged,
    rank: Ints,
    doc: Ints,
    grade: Floats,
    labelled: Ragged,
    labels: Floats,
    *,
    row_data: Mapping[str, Array] | None = None,
    label_data: Mapping[str, Array] | None = None,
    list_data: Mapping[str, Array] | None = None,
) -> tuple[Block, Ints]:
    """The block of these lists, and per list how many of its documents had stood in it before.

    `rank` orders each list and must not repeat within one; `doc` identifies a document within its list
    and is kept as `row_data["doc"]`. A document that comes again is dropped at its later place, and what
    stands below moves up.
    """
    rows = _by_rank(lists, rank)
    again = _repeated(lists, doc[rows])
    duplicates = lists.counts(again)
    if duplicates.any():
        rows, lists = rows[~again], lists.keep(~again)
    carried = {name: values[rows] for name, values in {"doc": doc, **(row_data or {})}.items()}
    return Block(lists, grade[rows], labelled, labels, carried, label_data or {}, list_data or {}), duplicates


def _by_rank(lists: Ragged, rank: Ints) -> Ints:
    """The rows in order of list and rank; without sorting where each list's ranks are just 1..n."""
    target = lists.offsets[lists.owner] + rank - 1
    if lists.rows and rank.min() >= 1 and (rank <= lists.lengths[lists.owner]).all():
        rows = np.full(lists.rows, -1, dtype=np.int64)
        rows[target] = np.arange(lists.rows)
        if (rows >= 0).all():
            return rows
    return np.lexsort((rank, lists.owner))


def _repeated(lists: Ragged, doc: Ints) -> Bools:
    """Per row in rank order, whether the document stands in the same list at an earlier row."""
    # One sort of (list, document) mixed into 64 bits clears nearly every block; the exact test, which
    # sorts by two keys, is for those where two mixed values are equal.
    mixed = np.sort(keys(lists, doc))
    again = np.zeros(lists.rows, dtype=np.bool_)
    if not (mixed[1:] == mixed[:-1]).any():
        return again
    order = np.lexsort((np.arange(lists.rows), doc, lists.owner))
    same = (doc[order][1:] == doc[order][:-1]) & (lists.owner[order][1:] == lists.owner[order][:-1])
    again[order[1:][same]] = True
    return again
