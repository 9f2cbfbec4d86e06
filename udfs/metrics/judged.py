"""How much of a list has labels."""

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import metric


@metric(
    latex=r"\mathrm{judged@}k = \frac{\mathrm{labelled\ in\ the\ top\ } k}{\min(k, \mathrm{retrieved})}",
    reference="Sakai, Alternatives to bpref, SIGIR 2007, on condensed lists; as ir_measures Judged",
    defined="labelled",
    condensable=False,
    pool=lambda block, k: block.depth(k),
    ratio=("labelled in the top k", "documents in the top k"),
)
def judged(block: Block, k: int | None) -> Floats:
    """The share of the top k that has a label: how far the other numbers can be trusted.

    Formula: labelled documents in the top k / min(k, retrieved), always on the list as it was returned.

    Edges: 0 for an empty list; null for a query without any label, which other metrics leave out too. A label of 0 is a
    label; with `unjudged: posterior`, a document that nobody was shown or judged has none.

    Use it: beside every other metric; below about 0.7, differences between systems say more about the labels.
    Not: as a measure of quality.
    """
    return safe_ratio(block.ranked.counts(block.shown & block.within(k)), block.depth(k))
