"""Kendall's rank correlation between two lists."""

from __future__ import annotations

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.inversions import count_pair_orders
from udfs.pairs import find_shared_documents
from udfs.ragged import Floats
from udfs.registry import metric


@metric(
    latex=r"\tau = \frac{\mathrm{concordant} - \mathrm{discordant}}{\mathrm{pairs}}",
    reference="Kendall, A new measure of rank correlation, Biometrika 1938",
    defined="always",
    condensable=False,
    needs=("earlier",),
    reads=("doc",),
    scope="pair",
)
def rank_tau(block: Block, other: Block, k: int | None) -> Floats:
    """Whether two systems put the documents that both return in the same order: +1 the same, −1 the reverse.

    Formula: (concordant − discordant) / pairs, over the documents that stand in the top k of both.

    Edges: null with fewer than two common documents. Symmetric. What only one system returns plays no part.

    Use it: beside rbo, to tell other documents from another order.
    Not: alone: two lists with two documents in common can agree perfectly.
    """
    common = find_shared_documents(block, other)
    kept = np.ones(common.lists.rows, np.bool_) if k is None else np.maximum(common.rank, common.other_rank) <= k
    lists = common.lists.keep(kept)
    order = np.lexsort((common.rank[kept], lists.owner))
    rising, falling = count_pair_orders(lists, common.other_rank[kept][order])
    pairs = lists.lengths * (lists.lengths - 1) / 2.0
    return safe_ratio(rising - falling, pairs, empty=np.nan)
