"""Average precision."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.graded import is_relevant
from udfs.ragged import Floats
from udfs.registry import NORM, REL, metric


def _list_terms(block: Block, k: int | None, *, rel: float | None, norm: str) -> tuple[Floats, Floats]:
    relevant = is_relevant(block.grade, rel)
    divisor = block.count_reachable(k, rel, norm)[block.ranked.owner]
    precisions = block.ranked.running_counts(relevant) / block.ranked.place
    return relevant.astype(np.float64), safe_ratio(precisions, divisor)


@metric(
    latex=r"\mathrm{AP@}k = \frac{1}{\mathrm{relevant}} \sum_{i=1}^{k} \mathrm{precision@}i \cdot \mathrm{rel}_i",
    reference="Buckley and Voorhees, Evaluating evaluation measure stability, SIGIR 2000; trec_eval map and map_cut",
    parameters={"rel": REL, "norm": NORM},
    terms=_list_terms,
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
    hits = block.hits(rel)
    precisions = block.cached(("precisions", rel), lambda: hits.lists.place / hits.rank)
    return safe_ratio(hits.sums(precisions, k), block.count_reachable(k, rel, norm))
