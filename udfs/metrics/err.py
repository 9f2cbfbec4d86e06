"""Expected reciprocal rank."""

import numpy as np

from udfs.block import Block
from udfs.ragged import Floats
from udfs.registry import GMAX, metric, top_of_scale


@metric(
    reference="Chapelle, Metzler, Zhang and Grinspan, Expected reciprocal rank for graded relevance, CIKM 2009",
    parameters={"gmax": GMAX},
    defined="gain",
)
def err(block: Block, k: int | None, *, gmax: float | None) -> Floats:
    """The expected reciprocal rank of the document at which a reader from top to bottom stops.

    Formula: Σ 1/r · R_r · Π_{i<r} (1 − R_i) over ranks 1 to k, where R = (2^g − 1) / 2^gmax is the chance that
    a document of grade g ends the search.

    Edges: grades above gmax count as gmax, negative ones as 0. gmax is the top of the label scale, never of the
    query: a query whose best document is mediocre must not look solved. The best value is below 1.

    Use it: for graded labels where one very good document makes the rest superfluous.
    Not: where people want several documents (ndcg), or the top of the scale is unknown.
    """
    top = top_of_scale(gmax)
    found = block.found(None)

    def expected() -> Floats:
        stop: Floats = (np.exp2(np.minimum(block.grade[found.rows], top)) - 1.0) / np.exp2(top)
        reached: Floats = np.ones_like(stop)
        reached[1:] = found.lists.running(np.multiply, 1.0 - stop)[:-1]
        reached[found.lists.place == 1] = 1.0
        return stop * reached / found.rank

    return found.sums(block.once(("err", top), expected), k)
