"""Discounted cumulative gain, plain and normalised."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.graded import discount, weights_by_rank
from udfs.ragged import Floats
from udfs.registry import Parameter, metric

GAIN = Parameter("exp2", "exp2 = 2^g − 1, which rewards the best documents; linear = g", choices=("exp2", "linear"))


def _list_terms(block: Block, k: int | None, *, gain: str) -> tuple[Floats, Floats]:
    gains = np.zeros(block.ranked.rows)
    gains[block.hits(None).rows] = block.gains(gain)
    return gains, weights_by_rank(discount, block.ranked.place)


def _write_steps(block: Block, k: int | None, *, gain: str) -> str:
    """The terms of the DCG of a block's only list."""
    hits, gains = block.hits(None), block.gains(gain)
    weights = weights_by_rank(discount, hits.rank)
    terms = [
        f"{value:g}×{weight:.4f}"
        for value, weight, rank in zip(gains, weights, hits.rank, strict=True)
        if k is None or rank <= k
    ]
    return f"DCG = {' + '.join(terms) or '0'} = {block.dcg(gain, k)[0]:.4f}"


@metric(
    latex=r"\mathrm{NDCG@}k = \frac{\mathrm{DCG@}k}{\mathrm{IDCG@}k}, "
    r"\qquad \mathrm{DCG@}k = \sum_{i=1}^{k} \frac{\mathrm{gain}(i)}{\log_2(i + 1)}",
    reference="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 2002; "
    "exp2 gain after Burges et al., ICML 2005; trec_eval ndcg and ndcg_cut are gain=linear",
    parameters={"gain": GAIN},
    defined="gain",
    pool=lambda block, k, *, gain: block.ideal_dcg(gain, k),
    ratio=("DCG", "IDCG"),
    steps=_write_steps,
    terms=_list_terms,
)
def ndcg(block: Block, k: int | None, *, gain: str) -> Floats:
    """How near the order of the top k is to the best order that the labels allow.

    Formula: DCG@k / IDCG@k, with DCG@k = Σ gain(i) / log2(i + 1) over ranks 1 to k. IDCG is the DCG of the ideal
    ranking, built from all labelled documents of the query, retrieved or not, and cut at k as well.

    Edges: a negative label gains 0, like an unjudged document. Undefined where the ideal is 0.

    Use it: for graded labels where the order of the first page matters. The default for search.
    Not: where one right answer is all that counts (mrr), nor to say how much of everything was found (recall).
    """
    return safe_ratio(block.dcg(gain, k), block.ideal_dcg(gain, k))


@metric(
    latex=r"\mathrm{DCG@}k = \sum_{i=1}^{k} \frac{\mathrm{gain}(i)}{\log_2(i + 1)}",
    reference="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 2002",
    parameters={"gain": GAIN},
    defined="gain",
    steps=_write_steps,
    terms=_list_terms,
)
def dcg(block: Block, k: int | None, *, gain: str) -> Floats:
    """The discounted gain of the top k, not normalised: it grows with the number of good documents.

    Formula: DCG@k = Σ gain(i) / log2(i + 1) over ranks 1 to k.

    Edges: a negative label gains 0, like an unjudged document. Not bounded by 1.

    Use it: to see where ndcg comes from, or to add gains up over queries on purpose.
    Not: to compare queries with each other.
    """
    return block.dcg(gain, k)
