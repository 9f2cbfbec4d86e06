"""Reciprocal rank."""

import numpy as np

from udfs.block import Block
from udfs.ragged import Floats
from udfs.registry import REL, metric


@metric(
    reference="Voorhees, The TREC-8 question answering track report, 1999; trec_eval recip_rank",
    parameters={"rel": REL},
)
def mrr(block: Block, k: int | None, *, rel: float | None) -> Floats:
    """How near the top the first relevant document stands.

    Formula: 1 / rank of the first relevant document, 0 where the top k has none; the mean over queries is MRR.

    Edges: all that follows the first hit is ignored. Rank 2 scores half of rank 1.

    Use it: where there is one right answer: known-item search, FAQ, navigation.
    Not: where several documents are worth reading, or grades differ.
    """
    found = block.found(rel)
    return found.sums(np.where(found.lists.place == 1, 1.0 / found.rank, 0.0), k)
