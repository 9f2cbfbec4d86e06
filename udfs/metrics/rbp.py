"""Rank-biased precision, and what the unjudged documents leave open of it."""

import numpy as np

from udfs.block import Block
from udfs.graded import is_relevant, weights_by_rank
from udfs.ragged import Floats
from udfs.registry import GMAX, REL, Parameter, metric, require_top_grade

PATIENCE = Parameter(0.8, "the chance that a reader goes on from one document to the next", minimum=0.0, maximum=1.0)
SOURCE = "Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, TOIS 2008"


def _weight(p: float, rank: Floats) -> Floats:
    weight: Floats = (1.0 - p) * np.power(p, rank - 1.0)
    return weight


def _list_terms(
    block: Block, k: int | None, *, p: float, rel: float | None, graded: bool, gmax: float | None
) -> tuple[Floats, Floats]:
    gain = is_relevant(block.grade, rel).astype(np.float64)
    if graded:
        top = require_top_grade(gmax)
        gain = np.clip(np.nan_to_num(block.grade), 0.0, top) / top
    return gain, weights_by_rank(lambda rank: _weight(p, rank), block.ranked.place)


@metric(
    latex=r"\mathrm{RBP} = (1 - p) \sum_{i} \mathrm{rel}_i \, p^{i-1}",
    reference=SOURCE,
    parameters={
        "p": PATIENCE,
        "rel": REL,
        "graded": Parameter(False, "count a document by g / gmax rather than 0 or 1; rel is then not used"),
        "gmax": GMAX,
    },
    terms=_list_terms,
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
    hits = block.hits(None if graded else rel)
    weight = weights_by_rank(lambda rank: _weight(p, rank), hits.rank)
    if graded:
        top = require_top_grade(gmax)
        weight = weight * (np.minimum(block.grade[hits.rows], top) / top)
    return hits.sums(weight, k)


@metric(
    latex=r"\mathrm{residual} = p^{n} + (1 - p) \sum_{i \le n,\ \mathrm{unjudged}} p^{i-1}",
    reference=SOURCE,
    parameters={"p": PATIENCE},
    defined="labelled",
    condensable=False,
)
def rbp_residual(block: Block, k: int | None, *, p: float) -> Floats:
    """How much higher rbp could be if every document without a label were relevant.

    Formula: p^n + (1 − p) · Σ p^(i−1) over the unjudged ranks i ≤ n, where n = min(k, retrieved): the weights of
    the unjudged documents and of all that was not returned. Always on the list as it was returned.

    Edges: 1 for an empty list: nothing is known; null for a query without any label, as for rbp.

    Use it: beside rbp with the same p; two systems differ for certain only if the gap is larger than this.
    Not: as a measure of quality.
    """
    open_rows = np.flatnonzero(~block.shown & block.within(k))
    lists = block.ranked.keep(~block.shown & block.within(k))
    weights = weights_by_rank(lambda rank: _weight(p, rank), block.ranked.place[open_rows])
    unseen = weights_by_rank(lambda rank: np.power(p, rank - 1.0), block.depth(k) + 1)
    return np.minimum(lists.sums(weights) + unseen, 1.0)
