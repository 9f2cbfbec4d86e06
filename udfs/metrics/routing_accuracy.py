"""Whether queries went to the right expert."""

import numpy as np

from udfs.block import Block
from udfs.ragged import Floats
from udfs.registry import metric


@metric(
    reference="accuracy of a classifier; as used for mixtures of retrieval experts",
    cutoff="none",
    defined="always",
    condensable=False,
    needs=("decisions",),
    reads=("expert", "optimal_expert"),
)
def routing_accuracy(block: Block, k: None) -> Floats:
    """Whether the query went to the expert that serves it best; the mean is the share routed well.

    Formula: 1 if expert = optimal_expert, else 0.

    Edges: null where either is not known. Labels and lists play no part.

    Use it: where a router chooses among several retrievers.
    Not: where wrong experts differ much in harm; compare the metrics of the lists instead.
    """
    expert, optimal = block.list_data["expert"], block.list_data["optimal_expert"]
    decided = (expert.astype(np.int64) >= 0) & (optimal.astype(np.int64) >= 0)
    return np.where(decided, (expert == optimal).astype(np.float64), np.nan)
