"""Metrics of how many subtopics the relevant documents cover.

The subtopics of a document are those that the judges gave it for the query, or else its categories.
"""

from __future__ import annotations

import numpy as np

from udfs.block import Array, Block, safe_ratio
from udfs.categories import expand_categories
from udfs.graded import discount, is_relevant, weights_by_rank
from udfs.greedy import rank_greedily
from udfs.ragged import Bools, Floats, Ints, Ragged
from udfs.registry import REL, Parameter, metric


def _covered(block: Block, rel: float | None) -> tuple[Ragged, Ints, Ints]:
    """Per relevant ranked document and subtopic of it: the rank, and how often the subtopic came before."""

    def compute() -> tuple[Ragged, Ints, Ints]:
        rows, subtopic = _expand_relevant(block, block.row_data["subtopics"], is_relevant(block.grade, rel))
        lists = Ragged.of_lengths(np.bincount(block.ranked.owner[rows], minlength=block.size))
        return lists, block.ranked.place[rows], lists.repeats(subtopic)

    return block.cached(("covered", rel), compute)


def _coverable(block: Block, rel: float | None) -> tuple[Ragged, Ints, Ints]:
    """Per relevant document of the query and subtopic of it: its label, and the subtopic."""

    def compute() -> tuple[Ragged, Ints, Ints]:
        rows, subtopic = _expand_relevant(block, block.label_data["subtopics"], is_relevant(block.labels, rel))
        return Ragged.of_lengths(np.bincount(block.labelled.owner[rows], minlength=block.size)), rows, subtopic

    return block.cached(("coverable", rel), compute)


def _expand_relevant(block: Block, number: Array, mask: Bools) -> tuple[Ints, Ints]:
    """Per row of the mask and subtopic of it: the row, and the subtopic."""
    rows = np.flatnonzero(mask)
    index, subtopic = expand_categories(block.sets, number[rows].astype(np.int64, copy=False))
    return rows[index], subtopic


def _rank_ideal(block: Block, k: int | None, alpha: float, rel: float | None) -> tuple[Ragged, Ints, Ints]:
    """Per document of the ideal ranking and subtopic of it: the rank, and how often the subtopic came before."""

    def compute() -> tuple[Ragged, Ints, Ints]:
        lists, rows, subtopic = _coverable(block, rel)
        if block.sets is None:  # each document has one subtopic: the first of every subtopic, then the second, …
            repeats = lists.repeats(subtopic)
            return lists, lists.place, repeats[np.lexsort((repeats, lists.owner))]
        order = block.label_data["id_order"].astype(np.int64, copy=False)
        rank = rank_greedily(lists, rows, subtopic, order[rows], 1.0 - alpha, k)
        ranked = np.flatnonzero(rank)
        ranked = ranked[np.lexsort((rank[ranked], lists.owner[ranked]))]
        ideal = Ragged.of_lengths(np.bincount(lists.owner[ranked], minlength=lists.size))
        return ideal, rank[ranked], ideal.repeats(subtopic[ranked])

    return block.cached(("ideal_subtopics", k, alpha, rel), compute)


@metric(
    latex=r"\alpha\mathrm{-NDCG@}k = \frac{\alpha\mathrm{-DCG@}k}{\mathrm{ideal\ } \alpha\mathrm{-DCG@}k}, "
    r"\qquad \alpha\mathrm{-DCG@}k = \sum_{i=1}^{k} \frac{\sum_{s \in S_i} (1 - \alpha)^{c_{s,i}}}{\log_2(i + 1)}",
    reference="Clarke et al., Novelty and diversity in information retrieval evaluation, SIGIR 2008",
    parameters={
        "alpha": Parameter(
            0.5, "how much of a subtopic's worth each further document of it loses", minimum=0.0, maximum=1.0
        ),
        "rel": REL,
    },
    needs=("subtopics",),
    reads=("subtopics",),
)
def alpha_ndcg(block: Block, k: int | None, *, alpha: float, rel: float | None) -> Floats:
    """NDCG that pays less for each further relevant document of a subtopic already shown.

    Formula: Σ Σ (1 − α)^c / log2(i + 1) over the relevant documents in the top k and the subtopics of each / the same
    sum of the ideal ranking, where c counts the relevant documents of the same subtopic above rank i.

    Edges: the ideal is greedy, as published, with ties by doc_id, descending, as in ndeval. Where documents have one
    subtopic each, greedy is also best and the value never exceeds 1; where they have several it can, slightly. A
    relevant document without a subtopic gains nothing; a query where none has one counts as a query without relevant
    documents.

    Use it: for ambiguous queries, where the first page should serve several meanings.
    Not: where one subtopic is what was asked for.
    """

    def gain(lists: Ragged, rank: Ints, repeats: Ints) -> Floats:
        novelty = weights_by_rank(lambda count: np.power(1.0 - alpha, count - 1.0), repeats + 1)
        return lists.sums(np.where(_up_to(rank, k), novelty * weights_by_rank(discount, rank), 0.0))

    return safe_ratio(gain(*_covered(block, rel)), gain(*_rank_ideal(block, k, alpha, rel)), empty=np.nan)


@metric(
    reference="Zhai, Cohen and Lafferty, Beyond independent relevance, SIGIR 2003",
    parameters={"rel": REL},
    needs=("subtopics",),
    reads=("subtopics",),
)
def subtopic_recall(block: Block, k: int | None, *, rel: float | None) -> Floats:
    """The share of a query's relevant subtopics that the top k shows.

    Formula: distinct subtopics of the relevant documents in the top k / distinct subtopics of all relevant
    documents of the query.

    Edges: relevant documents without a subtopic are left out; a query where none has one counts as a query
    without relevant documents. With more than k subtopics, 1 may be out of reach.

    Use it: to see whether every meaning of a query is served at all.
    Not: to judge the order (alpha_ndcg).
    """
    lists, rank, repeats = _covered(block, rel)
    ideal, _, subtopic = _coverable(block, rel)
    shown = lists.counts((repeats == 0) & _up_to(rank, k))
    possible = ideal.counts(ideal.repeats(subtopic) == 0)
    return safe_ratio(shown, possible, empty=np.nan)


def _up_to(rank: Ints, k: int | None) -> Bools:
    return np.ones(len(rank), dtype=np.bool_) if k is None else rank <= k
