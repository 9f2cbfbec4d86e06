"""Metrics of how many subtopics the relevant documents cover; a document's subtopic is its category."""

from __future__ import annotations

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.graded import discount, is_relevant, weights_by_rank
from udfs.ragged import Floats, Ints, Ragged
from udfs.registry import REL, Parameter, metric


def _covered(block: Block, rel: float | None) -> tuple[Ragged, Ints, Ints]:
    """The relevant ranked documents with a category, the rank of each, and how often its category came before."""

    def compute() -> tuple[Ragged, Ints, Ints]:
        category = block.row_data["category"].astype(np.int64)
        mask = is_relevant(block.grade, rel) & (category >= 0)
        lists = block.ranked.keep(mask)
        return lists, block.ranked.place[mask], lists.repeats(category[mask])

    return block.cached(("covered", rel), compute)


def _coverable(block: Block, rel: float | None) -> tuple[Ragged, Ints]:
    """All relevant documents with a category, and how often its category came before; smallest first."""

    def compute() -> tuple[Ragged, Ints]:
        category = block.label_data["category"].astype(np.int64)
        mask = is_relevant(block.labels, rel) & (category >= 0)
        lists = block.labelled.keep(mask)
        repeats = lists.repeats(category[mask])
        return lists, repeats[np.lexsort((repeats, lists.owner))]

    return block.cached(("coverable", rel), compute)


@metric(
    latex=r"\alpha\mathrm{-NDCG@}k = \frac{\alpha\mathrm{-DCG@}k}{\mathrm{ideal\ } \alpha\mathrm{-DCG@}k}, "
    r"\qquad \alpha\mathrm{-DCG@}k = \sum_{i=1}^{k} \frac{\mathrm{rel}_i \, (1 - \alpha)^{c_i}}{\log_2(i + 1)}",
    reference="Clarke et al., Novelty and diversity in information retrieval evaluation, SIGIR 2008",
    parameters={
        "alpha": Parameter(
            0.5, "how much of a category's worth each further document of it loses", minimum=0.0, maximum=1.0
        ),
        "rel": REL,
    },
    needs=("documents",),
    reads=("category",),
)
def alpha_ndcg(block: Block, k: int | None, *, alpha: float, rel: float | None) -> Floats:
    """NDCG that pays less for each further relevant document of a category already shown.

    Formula: Σ (1 − α)^c_i / log2(i + 1) over the relevant documents in the top k / the same sum of the ideal
    ranking, where c_i counts the relevant documents of the same category above rank i.

    Edges: the ideal is greedy, as published. A document has one category here, so greedy is also best, and
    the value never exceeds 1; with several subtopics a document it could, slightly. A relevant document without a
    category gains nothing; a query where none has one counts as a query without relevant documents.

    Use it: for ambiguous queries, where the first page should serve several meanings.
    Not: where one category is what was asked for.
    """

    def worth(repeats: Ints, rank: Ints) -> Floats:
        return weights_by_rank(lambda count: np.power(1.0 - alpha, count - 1.0), repeats + 1) * weights_by_rank(
            discount, rank
        )

    lists, rank, repeats = _covered(block, rel)
    ideal, ideal_repeats = _coverable(block, rel)
    gained = lists.sums(np.where(_up_to(rank, k), worth(repeats, rank), 0.0))
    possible = ideal.sums(np.where(_up_to(ideal.place, k), worth(ideal_repeats, ideal.place), 0.0))
    return safe_ratio(gained, possible, empty=np.nan)


@metric(
    reference="Zhai, Cohen and Lafferty, Beyond independent relevance, SIGIR 2003",
    parameters={"rel": REL},
    needs=("documents",),
    reads=("category",),
)
def subtopic_recall(block: Block, k: int | None, *, rel: float | None) -> Floats:
    """The share of a query's relevant categories that the top k shows.

    Formula: distinct categories of the relevant documents in the top k / distinct categories of all relevant
    documents of the query.

    Edges: relevant documents without a category are left out; a query where none has one counts as a query
    without relevant documents. With more than k categories, 1 cannot be reached.

    Use it: to see whether every meaning of a query is served at all.
    Not: to judge the order (alpha_ndcg).
    """
    lists, rank, repeats = _covered(block, rel)
    ideal, ideal_repeats = _coverable(block, rel)
    shown = lists.counts((repeats == 0) & _up_to(rank, k))
    possible = ideal.counts(ideal_repeats == 0)
    return safe_ratio(shown, possible, empty=np.nan)


def _up_to(rank: Ints, k: int | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.ones(len(rank), dtype=np.bool_) if k is None else rank <= k
