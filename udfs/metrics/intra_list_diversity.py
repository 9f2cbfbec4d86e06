"""How varied a list is."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.categories import CategorySets
from udfs.ragged import Floats, Ints, Ragged
from udfs.registry import metric
from udfs.sorting import sort_distinct

PAIRS_AT_ONCE = 1 << 22  # bounds memory where long lists have few categories


@metric(
    latex=r"\mathrm{ILD@}k = 1 - \frac{\mathrm{pairs\ that\ share\ a\ category}}{\mathrm{pairs}}",
    reference="Ziegler et al., Improving recommendation lists through topic diversification, WWW 2005",
    defined="always",
    needs=("documents",),
    reads=("category",),
)
def intra_list_diversity(block: Block, k: int | None) -> Floats:
    """How varied the top k is: the share of its pairs that have no category in common.

    Formula: 1 − pairs that share a category / pairs, over the documents in the top k that have a category.

    Edges: null with fewer than two such documents. Labels play no part: a varied list may be useless.

    Use it: for recommendations and browsing, beside a metric of relevance.
    Not: alone, nor for queries that name one category.
    """

    def compute() -> tuple[Ragged, Ints, Ints]:
        category = block.row_data["category"].astype(np.int64)
        mask = category >= 0
        lists, number = block.ranked.keep(mask), category[mask]
        # The nth document of a category makes n − 1 pairs with those before it.
        alike = lists.repeats(number) if block.sets is None else _count_alike(lists, number, block.sets)
        return lists, block.ranked.place[mask], alike

    lists, rank, alike = block.cached("categories", compute)
    shown = np.ones(lists.rows, dtype=np.bool_) if k is None else rank <= k
    documents = lists.counts(shown)
    pairs = documents * (documents - 1) / 2.0
    same = lists.sums(np.where(shown, alike, 0))
    return 1.0 - safe_ratio(same, pairs, empty=np.nan)


def _count_alike(lists: Ragged, number: Ints, sets: CategorySets) -> Ints:
    """Per document, the number of earlier documents of its list that share a category with it."""
    doc, category = sets.expand(number)
    order = np.lexsort((doc, category, lists.owner[doc]))
    groups = Ragged.of_sorted(lists.owner[doc][order], category[order])
    place = np.empty(len(doc), dtype=np.int64)  # per document and category, where it is in this order
    place[order] = np.arange(len(doc))
    earlier = np.empty(len(doc), dtype=np.int64)
    earlier[order] = groups.place - 1
    alike = np.zeros(len(number), dtype=np.int64)
    by_doc = Ragged.of_lengths(np.bincount(doc, weights=earlier, minlength=len(number)).astype(np.int64))
    rows = Ragged.of_lengths(np.bincount(doc, minlength=len(number)))
    for part in by_doc.slices(PAIRS_AT_ONCE):
        some = slice(rows.offsets[part.start], rows.offsets[part.stop])
        pairs = Ragged.of_lengths(earlier[some])
        other = doc[order][place[some][pairs.owner] - pairs.place]
        both = sort_distinct(doc[some][pairs.owner] * len(number) + other)
        alike += np.bincount(both // len(number), minlength=len(number))
    return alike
