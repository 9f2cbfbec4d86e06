"""From the rows of ranked lists to a `Block`: a document that stands in a list again is taken out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udfs.block import Array, Block
from udfs.match import keys
from udfs.ragged import Bools, Floats, Ints, Ragged
from udfs.slots import Slots


def assemble(
    lists: Ragged,
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

    Each list comes best first. `doc` identifies a document within its list and is kept as `row_data["doc"]`.
    A document that comes again is dropped at its later place, and what stands below moves up.
    """
    carried: dict[str, Array] = {"doc": doc, **(row_data or {})}
    again = _repeated(lists, doc)
    duplicates = lists.counts(again)
    if duplicates.any():
        lists, grade = lists.keep(~again), grade[~again]
        carried = {name: values[~again] for name, values in carried.items()}
    return Block(lists, grade, labelled, labels, carried, label_data or {}, list_data or {}), duplicates


def _repeated(lists: Ragged, doc: Ints) -> Bools:
    """Per row, whether the document stands in the same list at an earlier row."""
    # (list, document) mixed into 64 bits clears nearly every row; the exact test is for the others.
    again = np.zeros(lists.rows, dtype=np.bool_)
    rows = Slots(keys(lists.owner, lists.size, doc)).repeated()
    order = rows[np.lexsort((rows, doc[rows], lists.owner[rows]))]
    same = (doc[order][1:] == doc[order][:-1]) & (lists.owner[order][1:] == lists.owner[order][:-1])
    again[order[1:][same]] = True
    return again
