"""Whether a list has any relevant document."""

import numpy as np

from udfs.block import Block
from udfs.ragged import Floats
from udfs.registry import REL, metric


def _write_steps(block: Block, k: int | None, *, rel: float | None) -> str:
    hits = block.hits(rel)
    return f"first relevant at rank {hits.rank[0]}" if hits.counts(k)[0] else "no relevant document"


@metric(reference="trec_eval success", parameters={"rel": REL}, steps=_write_steps)
def hit(block: Block, k: int | None, *, rel: float | None) -> Floats:
    """Whether the top k holds any relevant document.

    Formula: 1 if there is a hit in the top k, else 0; its mean is the share of queries answered at all.

    Edges: one hit is as good as ten.

    Use it: where one right answer ends the search: FAQ, navigation, the context of a language model.
    Not: where people compare several results.
    """
    return (block.count_hits(k, rel) > 0).astype(np.float64)
