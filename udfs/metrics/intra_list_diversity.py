"""How varied a list is."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats, Ints, Ragged
from udfs.registry import metric


@metric(
    latex=r"\mathrm{ILD@}k = 1 - \frac{\mathrm{pairs\ of\ the\ same\ category}}{\mathrm{pairs}}",
    reference="Ziegler et al., Improving recommendation lists through topic diversification, WWW 2005",
    defined="always",
    needs=("documents",),
    reads=("category",),
)
def intra_list_diversity(block: Block, k: int | None) -> Floats:
    """How varied the top k is: the share of its pairs that are of different categories.

    Formula: 1 − pairs of the same category / pairs, over the documents in the top k that have a category.

    Edges: null with fewer than two such documents. Labels play no part: a varied list may be useless.

    Use it: for recommendations and browsing, beside a metric of relevance.
    Not: alone, nor for queries that name one category.
    """

    def compute() -> tuple[Ragged, Ints, Ints]:
        category = block.row_data["category"].astype(np.int64)
        mask = category >= 0
        lists = block.ranked.keep(mask)
        return lists, block.ranked.place[mask], lists.repeats(category[mask])

    lists, rank, repeats = block.cached("categories", compute)
    shown = np.ones(lists.rows, dtype=np.bool_) if k is None else rank <= k
    documents = lists.counts(shown)
    pairs = documents * (documents - 1) / 2.0
    # The nth document of a category makes n − 1 pairs with those before it.
    same = lists.sums(np.where(shown, repeats, 0))
    return 1.0 - safe_ratio(same, pairs, empty=np.nan)
