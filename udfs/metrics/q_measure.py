"""Q-measure."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import NORM, REL, metric


@metric(
    latex=r"Q\mathrm{@}k = "
    r"\frac{1}{R} \sum_{r=1}^{k} \mathrm{rel}_r \cdot \frac{C_r + \mathrm{cg}_r}{r + \mathrm{cg}^{*}_r}",
    reference="Sakai, On the reliability of information retrieval metrics based on graded relevance, IPM 2007",
    parameters={"rel": REL, "norm": NORM},
)
def q_measure(block: Block, k: int | None, *, rel: float | None, norm: str) -> Floats:
    """Average precision for graded labels: each precision is blended with the gain gathered so far.

    Formula: 1/R · Σ rel_r · (C_r + cg_r) / (r + cg*_r) over ranks 1 to k, where C counts the relevant documents and
    cg sums the grades of those in the top r, cg* is the same sum in the ideal ranking, and R counts the relevant
    documents of the query, with norm=cut at most k (β = 1, linear gain).

    Edges: documents below rel gain nothing. With binary labels it is close to map, yet not equal. With more than
    k relevant documents, 1 cannot be reached at k unless norm=cut.

    Use it: for graded labels where several documents are wanted and late ones still count more than in ndcg.
    Not: where only the first page is read (ndcg@k).
    """
    hits = block.hits(rel)

    def blended() -> Floats:
        owner = hits.lists.owner
        gained = hits.lists.running(np.add, np.maximum(block.grade[hits.rows], 0.0))
        lists, grade = block.ideal(rel)
        best = np.append(lists.running(np.add, grade), 0.0)
        last = lists.offsets[owner] + np.minimum(hits.rank, lists.lengths[owner]) - 1
        could = np.where(lists.lengths[owner] > 0, best[last], 0.0)
        return (hits.lists.place + gained) / (hits.rank + could)

    return safe_ratio(hits.sums(block.cached(("q", rel), blended), k), block.count_reachable(k, rel, norm))
