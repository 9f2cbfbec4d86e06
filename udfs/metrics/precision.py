"""Precision."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats, Ints
from udfs.registry import REL, Parameter, metric


def _divisor(block: Block, k: int | None, *, rel: float | None, over: str) -> Ints:
    return block.depth(k) if k is None or over == "retrieved" else np.full(block.size, k)


@metric(
    latex=r"\mathrm{precision@}k = \frac{\mathrm{hits\ in\ the\ top\ } k}{k}",
    reference="Cleverdon, The Cranfield tests on index language devices, 1967; trec_eval P and set_P",
    parameters={
        "rel": REL,
        "over": Parameter(
            "k", "k = divide by k, even if the list is shorter; retrieved = by min(k, retrieved)", ("k", "retrieved")
        ),
    },
    pool=_divisor,
    ratio=("relevant in the top k", "places"),
)
def precision(block: Block, k: int | None, *, rel: float | None, over: str) -> Floats:
    """The share of the top k that is relevant.

    Formula: hits in the top k / k; with over=retrieved, / min(k, retrieved). Without a cut-off, hits / retrieved.

    Edges: a list shorter than k still divides by k, so that answering little is not rewarded. A query with
    fewer than k relevant documents cannot reach 1.

    Use it: where people read the whole first page and each bad result costs the same.
    Not: where the order within the page matters (ndcg), or queries have one right answer (mrr).
    """
    return safe_ratio(block.count_hits(k, rel), _divisor(block, k, rel=rel, over=over))
