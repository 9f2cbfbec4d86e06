"""How many retrievals a gate saves."""

import numpy as np

from udfs.block import Block
from udfs.ragged import Floats
from udfs.registry import metric


@metric(
    reference="the share of retrievals saved; as used for adaptive retrieval, Asai et al., Self-RAG, ICLR 2024",
    cutoff="none",
    defined="always",
    condensable=False,
    needs=("decisions",),
    reads=("retrieved", "retrieval_needed"),
)
def gate_efficiency(block: Block, k: None) -> Floats:
    """Whether a retrieval was skipped and rightly so; the mean is the share of queries it was saved for.

    Formula: 1 if retrieval was neither run nor needed, else 0; the mean is correctly skipped retrievals / queries.

    Edges: null where either is not known. Its best value is the share of queries that need no retrieval.

    Use it: to see what a gate in front of retrieval saves.
    Not: alone: a gate that skips everything looks best. Watch hit or recall on the queries that need retrieval.
    """
    retrieved = block.list_data["retrieved"].astype(np.float64)
    needed = block.list_data["retrieval_needed"].astype(np.float64)
    skipped = ((retrieved == 0) & (needed == 0)).astype(np.float64)
    return np.where(np.isnan(retrieved) | np.isnan(needed), np.nan, skipped)
