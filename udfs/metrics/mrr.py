"""Reciprocal rank."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import REL, metric


def _write_steps(block: Block, k: int | None, *, rel: float | None) -> str:
    hits = block.hits(rel)
    return f"1 / rank {hits.rank[0]} of the first relevant" if hits.counts(k)[0] else "no relevant document"


def _list_terms(block: Block, k: int | None, *, rel: float | None) -> tuple[Floats, Floats]:
    first = block.find_first_hit(rel)[block.ranked.owner]
    return (block.ranked.place == first).astype(np.float64), 1.0 / block.ranked.place


@metric(
    latex=r"\mathrm{RR} = \frac{1}{\mathrm{rank\ of\ the\ first\ relevant\ document}}",
    reference="Voorhees, The TREC-8 question answering track report, 1999; trec_eval recip_rank",
    parameters={"rel": REL},
    steps=_write_steps,
    terms=_list_terms,
)
def mrr(block: Block, k: int | None, *, rel: float | None) -> Floats:
    """How near the top the first relevant document stands.

    Formula: 1 / rank of the first relevant document, 0 where the top k has none; the mean over queries is MRR.

    Edges: everything after the first hit is ignored. Rank 2 scores half of rank 1.

    Use it: where there is one right answer: known-item search, FAQ, navigation.
    Not: where several documents are worth reading, or grades differ.
    """
    rank = block.find_first_hit(rel)
    return safe_ratio(np.ones(block.size), rank if k is None else np.where(rank <= k, rank, 0))
