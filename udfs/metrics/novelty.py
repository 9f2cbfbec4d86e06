"""How far a list is from showing only what is popular."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import metric


@metric(
    latex=r"\mathrm{novelty@}k = "
    r"-\frac{1}{n} \sum_{i \le k} \log_2 \frac{\mathrm{popularity}_i}{\sum_d \mathrm{popularity}_d}",
    reference="Zhou et al., Solving the apparent diversity-accuracy dilemma of recommender systems, PNAS 2010",
    defined="always",
    needs=("documents",),
    reads=("popularity",),
)
def novelty(block: Block, k: int | None) -> Floats:
    """How far the top k is from showing only what everybody uses already, in bits.

    Formula: the mean of −log2(share) over the documents in the top k, where share is a document's popularity
    divided by that of the whole catalogue. One bit more means half as popular.

    Edges: documents whose popularity is unknown or 0 are left out; null if none is left. Not bounded by 1.

    Use it: for recommendations, to watch that a ranker does not sink into best-sellers.
    Not: alone; random documents are novel.
    """
    share = block.row_data["popularity"].astype(np.float64)
    mask = (share > 0) & block.within(k)
    lists = block.ranked.keep(mask)
    bits = lists.sums(-np.log2(share[mask]))
    return safe_ratio(bits, lists.lengths, empty=np.nan)
