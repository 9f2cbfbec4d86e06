"""Give the documents of ranked lists the grades that their queries' labels have for them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from udfs.ragged import Floats, Ints, Ragged

MIX = np.uint64(0x9E3779B97F4A7C15)
Keys = npt.NDArray[np.uint64]


def match(lists: Ragged, doc: Ints, labelled: Ragged, label_doc: Ints, label: Floats) -> Floats:
    """Per ranked document, the label of the same list with the same document; NaN where there is none.

    List g is matched with labels g. `label_doc` must not repeat within a list (see `best_labels`).
    """
    key, label_key = keys(lists, doc), keys(labelled, label_doc)
    order = np.argsort(label_key)
    ordered = label_key[order]
    if (ordered[1:] == ordered[:-1]).any():  # two documents share a key: spell keys out
        both = np.concatenate((np.stack((lists.owner, doc)), np.stack((labelled.owner, label_doc))), axis=1)
        code = np.unique(both, axis=1, return_inverse=True)[1].ravel().astype(np.uint64)
        key, label_key = code[: lists.rows], code[lists.rows :]
        order = np.argsort(label_key)
        ordered = label_key[order]
    grade = np.full(lists.rows, np.nan)
    if not labelled.rows:
        return grade
    at = np.minimum(np.searchsorted(ordered, key), labelled.rows - 1)
    found = order[at]
    same = (label_doc[found] == doc) & (labelled.owner[found] == lists.owner)
    grade[same] = label[found[same]]
    return grade


def best_labels(labelled: Ragged, label_doc: Ints, label: Floats) -> npt.NDArray[np.bool_]:
    """Which labels to keep so that no document of a list has two: of several, the highest."""
    key = np.sort(keys(labelled, label_doc))
    keep = np.ones(labelled.rows, dtype=np.bool_)
    if not (key[1:] == key[:-1]).any():
        return keep
    order = np.lexsort((-label, label_doc, labelled.owner))
    again = (label_doc[order][1:] == label_doc[order][:-1]) & (labelled.owner[order][1:] == labelled.owner[order][:-1])
    keep[order[1:][again]] = False
    return keep


def keys(lists: Ragged, doc: Ints) -> Keys:
    """List and document in 64 bits: nearly always different where either is, and ascending from list to list."""
    # In the order of lists, so that looking up the documents of a list stays in one part of memory.
    bits = np.uint64(lists.size.bit_length())
    return (lists.owner.view(np.uint64) << (np.uint64(64) - bits)) | ((doc.view(np.uint64) * MIX) >> bits)
