"""How much of a list has labels."""

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import metric


@metric(
    reference="Sakai, Alternatives to bpref, SIGIR 2007, on condensed lists; as ir_measures Judged",
    defined="always",
    condensable=False,
)
def judged(block: Block, k: int | None) -> Floats:
    """The share of the top k that has a label: how far the other numbers can be trusted.

    Formula: labelled documents in the top k / min(k, retrieved), always on the list as it was returned.

    Edges: 0 for an empty list and for a query without labels. A label of 0 is a label.

    Use it: beside every other metric; below about 0.7, differences between systems say more about the labels.
    Not: as a measure of quality.
    """
    return safe_ratio(block.ranked.counts(block.judged & block.within(k)), block.depth(k))
