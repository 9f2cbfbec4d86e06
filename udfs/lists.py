"""From the rows of ranked lists to a `Block`, without duplicate documents."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from udfs.block import Array, Block, QueryPool
from udfs.categories import CategorySets
from udfs.match import pack_keys
from udfs.ragged import Bools, Floats, Ints, Ragged
from udfs.slots import Slots


def build_block(
    lists: Ragged,
    doc: Ints,
    grade: Floats,
    labelled: Ragged,
    labels: Floats,
    *,
    row_data: Mapping[str, Array] | None = None,
    label_data: Mapping[str, Array] | None = None,
    list_data: Mapping[str, Array] | None = None,
    pool: QueryPool | None = None,
    sets: CategorySets | None = None,
) -> tuple[Block, Ints]:
    """The block of these lists, and per list the number of duplicates that were dropped.

    Each list comes best first. `doc` identifies a document within its list and is kept as `row_data["doc"]`.
    A duplicate document keeps its best place, and the documents below its other places move up.
    """
    data: dict[str, Array] = {"doc": doc, **(row_data or {})}
    duplicate = find_duplicates(lists, doc)
    dropped = lists.counts(duplicate)
    if dropped.any():
        lists, grade = lists.keep(~duplicate), grade[~duplicate]
        data = {name: values[~duplicate] for name, values in data.items()}
    block = Block(
        ranked=lists,
        grade=grade,
        labelled=labelled,
        labels=labels,
        row_data=data,
        label_data=label_data or {},
        list_data=list_data or {},
        pool=pool,
        sets=sets,
    )
    return block, dropped


def build_ranking_block(ids: Sequence[Hashable], grades: Mapping[Any, float]) -> tuple[Block, int]:
    """The block of one ranking, best first, and the number of its duplicates; `row_data["doc"]` indexes `ids`."""
    codes: dict[Hashable, int] = {}
    doc = np.array([codes.setdefault(id_, row) for row, id_ in enumerate(ids)], dtype=np.int64)
    block, duplicates = build_block(
        Ragged.of_lengths([len(ids)]),
        doc,
        np.array([grades.get(id_, np.nan) for id_ in ids], dtype=np.float64),
        Ragged.of_lengths([len(grades)]),
        np.array(list(grades.values()), dtype=np.float64),
    )
    return block, int(duplicates[0])


def find_duplicates(lists: Ragged, doc: Ints) -> Bools:
    """Per row, whether an earlier row of the same list has the same document."""
    # Lists and documents hashed to 64 bits rule out nearly every row; the exact test is for the others.
    duplicate = np.zeros(lists.rows, dtype=np.bool_)
    rows = Slots(pack_keys(lists.owner, lists.size, doc)).repeated()
    order = rows[np.lexsort((rows, doc[rows], lists.owner[rows]))]
    same = (doc[order][1:] == doc[order][:-1]) & (lists.owner[order][1:] == lists.owner[order][:-1])
    duplicate[order[1:][same]] = True
    return duplicate
