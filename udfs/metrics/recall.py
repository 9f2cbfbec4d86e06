"""Recall."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import REL, Parameter, metric


@metric(
    reference="Cleverdon, The Cranfield tests on index language devices, 1967",
    parameters={
        "rel": REL,
        "cap": Parameter(False, "divide by min(k, relevant), so that 1 can be reached at any k"),
    },
)
def recall(block: Block, k: int | None, *, rel: float | None, cap: bool) -> Floats:
    """The share of the relevant documents that the top k holds.

    hits in the top k / relevant documents of the query; with cap=true / min(k, relevant).
    """
    relevant = block.relevant(rel)
    return safe_ratio(block.hits_within(k, rel), np.minimum(relevant, k) if cap and k else relevant)
