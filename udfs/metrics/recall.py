"""Recall."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import REL, Parameter, metric


@metric(
    reference="Cleverdon, The Cranfield tests on index language devices, 1967; trec_eval recall and set_recall",
    parameters={
        "rel": REL,
        "cap": Parameter(False, "divide by min(k, relevant), so that 1 can be reached at any k"),
    },
)
def recall(block: Block, k: int | None, *, rel: float | None, cap: bool) -> Floats:
    """The share of the relevant documents that the top k holds.

    Formula: hits in the top k / relevant documents of the query; with cap=true, / min(k, relevant).

    Edges: the divisor counts all labelled relevant documents, retrieved or not. With more than k of them,
    1 cannot be reached unless cap=true.

    Use it: for a first stage that hands its documents on (a reranker, a language model): what is missing
    there is lost. Choose k as the size of the hand-over.
    Not: with sparse labels, where "all relevant documents" is a guess.
    """
    relevant = block.relevant(rel)
    return safe_ratio(block.hits_within(k, rel), np.minimum(relevant, k) if cap and k else relevant)
