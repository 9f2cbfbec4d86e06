"""The ideal ranking of documents with several subtopics each, built greedily for many queries at once."""

from __future__ import annotations

import numpy as np

from udfs.ragged import Floats, Ints, Ragged


def rank_greedily(lists: Ragged, doc: Ints, subtopic: Ints, id_order: Ints, decay: float, depth: int | None) -> Ints:
    """Per row, a document and a subtopic of it, the rank of the document; 0 below `depth`.

    Each place goes to the document with the largest Σ decay^c over its subtopics, where c counts the documents of the
    subtopic that are placed already. Ties go to the largest `id_order`. The best ranking is NP-hard to find; this is
    the approximation of Clarke et al. (SIGIR 2008), and of ndeval.
    """
    if not len(doc):
        return np.zeros(0, dtype=np.int64)
    # Documents of a list by descending id, so that the first of equal sums is the one to take.
    order = np.lexsort((doc, -id_order, lists.owner))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = doc[order][1:] != doc[order][:-1]
    of_row = np.cumsum(first) - 1  # per row in this order, the number of its document
    owner = lists.owner[order][first]
    topic = np.unique(np.stack((lists.owner, subtopic)), axis=1, return_inverse=True)[1].ravel()[order]
    placed = np.zeros(int(topic.max(initial=-1)) + 1, dtype=np.int64)
    rank = np.zeros(len(owner), dtype=np.int64)
    longest = int(np.bincount(owner, minlength=1).max())
    for place in range(1, min(longest, depth or longest) + 1):
        worth: Floats = np.power(decay, placed[topic].astype(np.float64))
        gain: Floats = np.bincount(of_row, weights=worth, minlength=len(owner)).astype(np.float64, copy=False)
        left = np.flatnonzero(rank == 0)
        runs = Ragged.of_sorted(owner[left])
        best = left[_find_first_maximum(runs, gain[left])]
        rank[best] = place
        placed[topic[rank[of_row] == place]] += 1  # a topic is of one list, which places one document
    result = np.empty(len(order), dtype=np.int64)
    result[order] = rank[of_row]
    return result


def _find_first_maximum(lists: Ragged, values: Floats) -> Ints:
    """Per list, none of which is empty, the first row with its largest value."""
    rows = np.flatnonzero(values == lists.reduce(np.maximum, values)[lists.owner])
    return rows[np.searchsorted(lists.owner[rows], np.arange(lists.size))]
