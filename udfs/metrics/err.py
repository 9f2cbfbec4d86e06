"""Expected reciprocal rank."""

import numpy as np

from schemas.errors import DataQualityError
from udfs.block import Block
from udfs.graded import MAX_EXP2_GRADE
from udfs.ragged import Floats
from udfs.registry import GMAX, metric, require_top_grade


def _require_scale(gmax: float | None) -> float:
    top = require_top_grade(gmax)
    if top > MAX_EXP2_GRADE:
        hint = f"write gmax of at most {MAX_EXP2_GRADE:g}, or map the grades to a smaller scale"
        raise DataQualityError(f"the top of the label scale is {top:g}, too large for 2^grade", hint=hint)
    return top


def _compute_stops(block: Block, top: float) -> tuple[Floats, Floats]:
    """Of each document with a grade above 0, the chance that it ends the search, and that the reader gets there."""
    hits = block.hits(None)
    stop: Floats = (np.exp2(np.minimum(block.grade[hits.rows], top)) - 1.0) / np.exp2(top)
    reached: Floats = np.ones_like(stop)
    reached[1:] = hits.lists.running(np.multiply, 1.0 - stop)[:-1]
    reached[hits.lists.place == 1] = 1.0
    return stop, reached


def _list_terms(block: Block, k: int | None, *, gmax: float | None) -> tuple[Floats, Floats]:
    stop = np.zeros(block.ranked.rows)
    stop[block.hits(None).rows] = _compute_stops(block, _require_scale(gmax))[0]
    reached: Floats = np.ones_like(stop)
    reached[1:] = block.ranked.running(np.multiply, 1.0 - stop)[:-1]
    reached[block.ranked.place == 1] = 1.0
    return stop, reached / block.ranked.place


@metric(
    latex=r"\mathrm{ERR@}k = \sum_{r=1}^{k} \frac{R_r}{r} \prod_{i<r} (1 - R_i), "
    r"\qquad R_i = \frac{2^{g_i} - 1}{2^{g_{\max}}}",
    reference="Chapelle, Metzler, Zhang and Grinspan, Expected reciprocal rank for graded relevance, CIKM 2009",
    parameters={"gmax": GMAX},
    defined="gain",
    terms=_list_terms,
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
    top = _require_scale(gmax)

    def expected() -> Floats:
        stop, reached = _compute_stops(block, top)
        return stop * reached / block.hits(None).rank

    return block.hits(None).sums(block.cached(("err", top), expected), k)
