"""Discounted cumulative gain, plain and normalised."""

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import Parameter, metric

GAIN = Parameter("exp2", "exp2 = 2^g − 1, which prizes the best documents; linear = g", choices=("exp2", "linear"))


@metric(
    reference="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 2002; "
    "exp2 gain after Burges et al., ICML 2005",
    parameters={"gain": GAIN},
    defined="gain",
)
def ndcg(block: Block, k: int | None, *, gain: str) -> Floats:
    """How near the order of the top k is to the best order that the labels allow.

    DCG@k / IDCG@k, with DCG@k = Σ gain(i) / log2(i + 1) over ranks 1 to k. IDCG is the DCG of the ideal
    ranking, built from all labelled documents of the query, retrieved or not, and cut at k as well.
    """
    return safe_ratio(block.dcg(gain, k), block.ideal_dcg(gain, k))


@metric(
    reference="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 2002",
    parameters={"gain": GAIN},
    defined="gain",
)
def dcg(block: Block, k: int | None, *, gain: str) -> Floats:
    """The discounted gain of the top k, not normalised: it grows with the number of good documents.

    DCG@k = Σ gain(i) / log2(i + 1) over ranks 1 to k. Not comparable between queries.
    """
    return block.dcg(gain, k)
