"""Rank-biased precision, and what the unjudged documents leave open of it."""

import numpy as np

from udfs.block import Block, by_rank
from udfs.ragged import Floats
from udfs.registry import GMAX, REL, Parameter, metric, top_of_scale

PATIENCE = Parameter(0.8, "the chance that a reader goes on from one document to the next", minimum=0.0, maximum=1.0)
SOURCE = "Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, TOIS 2008"


def _weight(p: float, rank: Floats) -> Floats:
    weight: Floats = (1.0 - p) * np.power(p, rank - 1.0)
    return weight


@metric(
    reference=SOURCE,
    parameters={
        "p": PATIENCE,
        "rel": REL,
        "graded": Parameter(False, "count a document by g / gmax rather than 0 or 1; rel is then not used"),
        "gmax": GMAX,
    },
)
def rbp(block: Block, k: int | None, *, p: float, rel: float | None, graded: bool, gmax: float | None) -> Floats:
    """The rate at which a reader of patience p meets relevant documents.

    Formula: (1 − p) · Σ rel_i · p^(i−1); with graded=true, g_i / gmax in place of rel_i. The reader looks at
    1 / (1 − p) documents on average: 2 with p = .5, 5 with .8, 20 with .95.

    Edges: 1 is reached only by an endless list of relevant documents, so few relevant documents mean a low value
    however good the ranking. Grades above gmax count as gmax, negative ones as 0.

    Use it: where the depth of reading is known, and with rbp_residual, which says how much unjudged
    documents could add.
    Not: to compare queries with each other.
    """
    found = block.found(None if graded else rel)
    weight = by_rank(lambda rank: _weight(p, rank), found.rank)
    if graded:
        top = top_of_scale(gmax)
        weight = weight * (np.minimum(block.grade[found.rows], top) / top)
    return found.sums(weight, k)


@metric(reference=SOURCE, parameters={"p": PATIENCE}, defined="always", condensable=False)
def rbp_residual(block: Block, k: int | None, *, p: float) -> Floats:
    """How much higher rbp could be if every document without a label were relevant.

    Formula: p^n + (1 − p) · Σ p^(i−1) over the unjudged ranks i ≤ n, where n = min(k, retrieved): the weights of
    the unjudged documents and of all that was not returned. Always on the list as it was returned.

    Edges: 1 for an empty list and for a query without labels: nothing is known.

    Use it: beside rbp with the same p; two systems differ for certain only if the gap is larger than this.
    Not: as a measure of quality.
    """
    open_rows = np.flatnonzero(~block.judged & block.within(k))
    lists = block.ranked.keep(~block.judged & block.within(k))
    weights = by_rank(lambda rank: _weight(p, rank), block.ranked.place[open_rows])
    unseen = by_rank(lambda rank: np.power(p, rank - 1.0), block.depth(k) + 1)
    return np.minimum(lists.sums(weights) + unseen, 1.0)
