"""Recall."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats, Ints
from udfs.registry import REL, Parameter, metric


def _divisor(block: Block, k: int | None, *, rel: float | None, cap: bool) -> Ints:
    relevant = block.count_relevant(rel)
    return np.minimum(relevant, k) if cap and k else relevant


@metric(
    latex=r"\mathrm{recall@}k = \frac{\mathrm{hits\ in\ the\ top\ } k}{\mathrm{relevant}}",
    reference="Cleverdon, The Cranfield tests on index language devices, 1967; trec_eval recall and set_recall",
    parameters={
        "rel": REL,
        "cap": Parameter(False, "divide by min(k, relevant), so that 1 can be reached at any k"),
    },
    pool=_divisor,
    ratio=("relevant in the top k", "relevant documents"),
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
    return safe_ratio(block.count_hits(k, rel), _divisor(block, k, rel=rel, cap=cap))
