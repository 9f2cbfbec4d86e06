"""The harmonic mean of precision and recall."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import REL, metric


@metric(
    latex=r"\mathrm{F1@}k = \frac{2 P R}{P + R} = \frac{2 \cdot \mathrm{hits}}{k + \mathrm{relevant}}",
    reference="van Rijsbergen, Information Retrieval, 1979, chapter 7; trec_eval set_F",
    parameters={"rel": REL},
)
def f1(block: Block, k: int | None, *, rel: float | None) -> Floats:
    """The harmonic mean of precision@k and recall@k.

    Formula: 2·P·R / (P + R) = 2·hits / (k + relevant); without a cut-off, 2·hits / (retrieved + relevant).

    Edges: 0 without a hit. With k above or below the number of relevant documents, 1 cannot be reached.

    Use it: to compare sets of results, for instance what a filter or a classifier lets through.
    Not: for a ranking; it sees neither order nor grades.
    """
    size = block.ranked.lengths if k is None else np.full(block.size, k)
    return safe_ratio(2 * block.count_hits(k, rel), size + block.count_relevant(rel))
