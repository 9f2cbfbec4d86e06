"""Give the documents of ranked lists the grades that their queries' labels have for them."""

from __future__ import annotations

import numpy as np

from udfs.ragged import Floats, Ints, Ragged
from udfs.slots import Keys, Slots

MIX = np.uint64(0x9E3779B97F4A7C15)


def match(lists: Ragged, doc: Ints, labelled: Ragged, label_doc: Ints, label: Floats) -> Floats:
    """Per ranked document, the label of the same list with the same document; NaN where there is none.

    List g is matched with labels g. `label_doc` must not repeat within a list (see `best_labels`).
    """
    key, label_key = keys(lists.owner, lists.size, doc), keys(labelled.owner, labelled.size, label_doc)
    slots = Slots(label_key)
    if len(slots.repeated()):  # two documents share a key: spell keys out
        both = np.concatenate((np.stack((lists.owner, doc)), np.stack((labelled.owner, label_doc))), axis=1)
        code = np.unique(both, axis=1, return_inverse=True)[1].ravel().astype(np.uint64)
        key, slots = code[: lists.rows], Slots(code[lists.rows :])
    grade = np.full(lists.rows, np.nan)
    at = slots.find(key)
    known = np.flatnonzero(at >= 0)
    at = at[known]
    same = (label_doc[at] == doc[known]) & (labelled.owner[at] == lists.owner[known])
    grade[known[same]] = label[at[same]]
    return grade


def best_labels(query: Ints, queries: int, doc: Ints, grade: Floats) -> Ints:
    """The labels query by query, as places in the arrays; of several for a document the highest alone."""
    order = _high_first(query, queries, grade)
    rows = order[Slots(keys(query[order], queries, doc[order])).repeated()]
    if not len(rows):
        return order
    best_first = rows[np.lexsort((-grade[rows], doc[rows], query[rows]))]
    again = (doc[best_first][1:] == doc[best_first][:-1]) & (query[best_first][1:] == query[best_first][:-1])
    keep = np.ones(len(order), dtype=np.bool_)
    keep[best_first[1:][again]] = False
    return order[keep[order]]


def _high_first(query: Ints, queries: int, grade: Floats) -> Ints:
    """The rows query by query, and in a query from high grades to low ones as far as their first bits tell."""
    # Query, grade and row in one number, so that numbers are sorted and not places: that is several times as fast.
    bits = np.uint64(queries.bit_length()), np.uint64(len(query).bit_length())
    low = (grade + 0.0).view(np.uint64)  # + 0.0 makes one zero of two
    rising = np.where(low >> np.uint64(63), ~low, low | np.uint64(1 << 63))
    packed = (query.view(np.uint64) << (np.uint64(64) - bits[0])) | (~rising >> sum(bits) << bits[1])
    packed |= np.arange(len(query), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64((1 << int(bits[1])) - 1)).view(np.int64)


def keys(owner: Ints, size: int, doc: Ints) -> Keys:
    """One of `size` lists and a document in 64 bits: nearly always different where either is, ascending by list."""
    # In the order of lists, so that looking up the documents of a list stays in one part of memory.
    bits = np.uint64(size.bit_length())
    return (owner.view(np.uint64) << (np.uint64(64) - bits)) | ((doc.view(np.uint64) * MIX) >> bits)
