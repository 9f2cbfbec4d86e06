"""`Exposure`: the documents that whole systems show, for the metrics of scope `system`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.ragged import Bools, Ints, Ragged


@dataclass(frozen=True, eq=False)
class Exposure:
    """Per system, the distinct documents in the top k of its lists."""

    documents: Ragged  # the documents of each system
    list_count: Ints  # per document, the number of the system's lists with it in their top k
    in_catalogue: Bools  # per document
    catalogue_size: int  # distinct documents of the catalogue
    lists: Ints  # per system, the number of its lists

    @property
    def size(self) -> int:
        """The number of systems."""
        return self.documents.size


def count_exposure(system: Ints, doc: Ints, in_catalogue: Bools, *, lists: Ints, catalogue_size: int) -> Exposure:
    """Count how often each system shows each document, from one row per list and document in its top k."""
    order = np.lexsort((doc, system))
    system, doc = system[order], doc[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (system[1:] != system[:-1]) | (doc[1:] != doc[:-1])
    starts = np.flatnonzero(first)
    return Exposure(
        documents=Ragged.of_lengths(np.bincount(system[starts], minlength=len(lists))),
        list_count=np.diff(np.append(starts, len(order))),
        in_catalogue=in_catalogue[order][starts],
        catalogue_size=catalogue_size,
        lists=lists,
    )
