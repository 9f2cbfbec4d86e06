"""Average precision."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import REL, Parameter, metric


@metric(
    reference="Buckley and Voorhees, Evaluating evaluation measure stability, SIGIR 2000; trec_eval map and map_cut",
    parameters={
        "rel": REL,
        "norm": Parameter(
            "relevant", "relevant = divide by all relevant documents; cut = by min(k, relevant)", ("relevant", "cut")
        ),
    },
)
def map(block: Block, k: int | None, *, rel: float | None, norm: str) -> Floats:
    """The mean of the precisions at the places of the relevant documents.

    Formula: Σ precision@i · rel_i over ranks 1 to k / relevant documents of the query; with norm=cut,
    / min(k, relevant). The mean over queries is MAP.

    Edges: relevant documents that were not retrieved add 0. With more than k relevant documents, 1 cannot be
    reached unless norm=cut.

    Use it: for binary labels where several documents are wanted and all of the list is read.
    Not: for graded labels (ndcg, q_measure).
    """
    found, relevant = block.found(rel), block.relevant(rel)
    precisions = block.once(("precisions", rel), lambda: found.lists.place / found.rank)
    return safe_ratio(found.sums(precisions, k), np.minimum(relevant, k) if norm == "cut" and k else relevant)
