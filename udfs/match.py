"""Match the documents of ranked lists with the labels of their queries."""

from __future__ import annotations

import numpy as np

from udfs.ragged import Floats, Ints, Ragged
from udfs.slots import Keys, Slots

MIX = np.uint64(0x9E3779B97F4A7C15)


def match_labels(lists: Ragged, doc: Ints, labelled: Ragged, label_doc: Ints) -> Ints:
    """Per ranked document, the row of the label of the same list with the same document; −1 where there is none.

    List g is matched with labels g. `label_doc` must not repeat within a list (see `keep_best_labels`).
    """
    key, label_key = pack_keys(lists.owner, lists.size, doc), pack_keys(labelled.owner, labelled.size, label_doc)
    slots = Slots(label_key)
    if len(slots.repeated()):  # two documents share a key: use exact codes
        both = np.concatenate((np.stack((lists.owner, doc)), np.stack((labelled.owner, label_doc))), axis=1)
        code = np.unique(both, axis=1, return_inverse=True)[1].ravel().astype(np.uint64)
        key, slots = code[: lists.rows], Slots(code[lists.rows :])
    at = slots.find(key)
    rows = np.flatnonzero(at >= 0)
    near = at[rows]
    same = (label_doc[near] == doc[rows]) & (labelled.owner[near] == lists.owner[rows])
    at[rows[~same]] = -1
    return at


def take_grades(label: Floats, at: Ints) -> Floats:
    """The label of each row that `match_labels` returned; NaN where it is −1."""
    return np.append(label, np.nan)[at]


def keep_best_labels(query: Ints, queries: int, doc: Ints, grade: Floats, tie: Floats | None = None) -> Ints:
    """The rows of labels, query by query; of several labels for a document only the highest (or least `tie`)."""
    order = _sort_descending(query, queries, grade)
    rows = order[Slots(pack_keys(query[order], queries, doc[order])).repeated()]
    if not len(rows):
        return order
    ties = () if tie is None else (tie[rows],)
    best_first = rows[np.lexsort((*ties, -grade[rows], doc[rows], query[rows]))]
    again = (doc[best_first][1:] == doc[best_first][:-1]) & (query[best_first][1:] == query[best_first][:-1])
    keep = np.ones(len(order), dtype=np.bool_)
    keep[best_first[1:][again]] = False
    return order[keep[order]]


def _sort_descending(query: Ints, queries: int, grade: Floats) -> Ints:
    """The rows query by query, and within a query by descending grade, as far as its leading bits tell."""
    # Query, grade and row are packed into one number: sorting values is several times as fast as an argsort.
    bits = np.uint64(queries.bit_length()), np.uint64(len(query).bit_length())
    low = (grade + 0.0).view(np.uint64)  # + 0.0 turns −0.0 into 0.0
    rising = np.where(low >> np.uint64(63), ~low, low | np.uint64(1 << 63))
    packed = (query.view(np.uint64) << (np.uint64(64) - bits[0])) | (~rising >> sum(bits) << bits[1])
    packed |= np.arange(len(query), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64((1 << int(bits[1])) - 1)).view(np.int64)


def pack_keys(owner: Ints, size: int, doc: Ints) -> Keys:
    """List (one of `size`) and document hashed to 64 bits, ascending by list; collisions are rare."""
    # In the order of lists, so that looking up the documents of a list stays in one part of memory.
    bits = np.uint64(size.bit_length())
    return (owner.view(np.uint64) << (np.uint64(64) - bits)) | ((doc.view(np.uint64) * MIX) >> bits)
