"""Rank-biased overlap of two lists."""

from __future__ import annotations

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.pairs import find_shared_documents
from udfs.ragged import Floats
from udfs.registry import Parameter, metric


@metric(
    latex=r"\mathrm{RBO} = (1 - p) \sum_{d=1}^{\infty} p^{d-1} A_d",
    reference="Webber, Moffat and Zobel, A similarity measure for indefinite rankings, TOIS 2010, equation 32",
    parameters={"p": Parameter(0.9, "the weight of each rank against the one above it", minimum=0.0, maximum=1.0)},
    defined="always",
    condensable=False,
    needs=("earlier",),
    reads=("doc",),
    scope="pair",
)
def rbo(block: Block, other: Block, k: int | None, *, p: float) -> Floats:
    """Rank-biased overlap: how alike two rankings are, their tops counting most.

    Formula: (1 − p) · Σ p^(d−1) · A_d over all depths d, where A_d is the share of the two top d that is common,
    extrapolated beyond the ends of the lists: to the last agreement, as published for lists of uneven length.

    Edges: identical lists score 1, disjoint ones 0, one empty list 0; null if both are empty. Symmetric.

    Use it: to see how much a change reorders what people see, without any labels.
    Not: to say which list is better.
    """
    common = find_shared_documents(block, other)
    lengths, other_lengths = block.depth(k), other.depth(k)
    short, long = np.minimum(lengths, other_lengths), np.maximum(lengths, other_lengths)
    owner = common.lists.owner
    inside = (common.rank <= lengths[owner]) & (common.other_rank <= other_lengths[owner])
    shared = common.lists.keep(inside)
    depth = np.maximum(common.rank, common.other_rank)[inside]  # from this depth on, both tops hold the document

    # Tables over depth, entry d for the depths 1 to d: of p^(d−1) / d, and of p^(d−1); their length is a power
    # of two for the reason stated in `weights_by_rank`.
    ranks = np.arange(1, (1 << int(long.max(initial=15)).bit_length()) + 1, dtype=np.float64)
    powers = np.power(p, ranks - 1.0)  # p^d at entry d
    harmonic = np.concatenate(([0.0], np.cumsum(powers / ranks)))
    geometric = np.concatenate(([0.0], np.cumsum(powers)))

    seen = shared.sums(harmonic[long[shared.owner]] - harmonic[depth - 1])
    total = shared.lengths
    at_short = shared.counts(depth <= short[shared.owner])
    share = safe_ratio(at_short, short)
    stretched = share * ((geometric[long] - geometric[short]) - short * (harmonic[long] - harmonic[short]))
    rest = safe_ratio(total - at_short, long) + share
    value = (1.0 - p) * (seen + stretched) + rest * powers[long]
    return np.where(long > 0, np.clip(value, 0.0, 1.0), np.nan)
