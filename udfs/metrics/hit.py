"""Whether anything relevant was found."""

import numpy as np

from udfs.block import Block
from udfs.ragged import Floats
from udfs.registry import REL, metric


@metric(reference="trec_eval success", parameters={"rel": REL})
def hit(block: Block, k: int | None, *, rel: float | None) -> Floats:
    """Whether the top k holds any relevant document.

    Formula: 1 if there is a hit in the top k, else 0; its mean is the share of queries answered at all.

    Edges: one hit is as good as ten.

    Use it: where one right answer ends the search: FAQ, navigation, the context of a language model.
    Not: where people compare several results.
    """
    return (block.hits_within(k, rel) > 0).astype(np.float64)
