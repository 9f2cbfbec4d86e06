"""How much of a list nobody was shown."""

from udfs.block import Block, safe_ratio
from udfs.graded import discount, weights_by_rank
from udfs.ragged import Floats
from udfs.registry import metric


@metric(
    latex=r"\mathrm{unseen@}k = "
    r"\frac{\sum_{i \le k,\ \mathrm{no\ evidence}} 1 / \log_2(i + 1)}{\sum_{i \le k} 1 / \log_2(i + 1)}",
    reference="the complement of Judged in ir_measures, weighted as in Järvelin and Kekäläinen, TOIS 2002",
    defined="labelled",
    condensable=False,
)
def unseen(block: Block, k: int | None) -> Floats:
    """The share of the top k's weight on documents that nobody was shown: what rests on a prior alone.

    Formula: Σ 1 / log2(i + 1) over the ranks i of documents without evidence of their own / the same sum over all ranks
    in the top k. Evidence is an examination in the log or a judgment; without behaviour, any label.

    Edges: 0 for an empty list, null for a query without any label. Always on the list as it was returned.

    Use it: beside a metric on labels from behaviour; where it is high, the answer leans on how alike shown and unshown
    documents of the same ranks are.
    Not: as a measure of quality.
    """
    weights = weights_by_rank(discount, block.ranked.place) * block.within(k)
    return safe_ratio(block.ranked.sums(weights * ~block.shown), block.ranked.sums(weights))
