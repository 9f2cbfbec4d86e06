"""Precision at the number of relevant documents."""

from udfs.block import Block, safe_ratio
from udfs.ragged import Floats
from udfs.registry import REL, metric


@metric(
    latex=r"\mathrm{Rprec} = \frac{\mathrm{hits\ in\ the\ top\ } R}{R}",
    reference="trec_eval Rprec",
    parameters={"rel": REL},
    cutoff="none",
    pool=lambda block, k, *, rel: block.count_relevant(rel),
    ratio=("relevant in the top R", "relevant documents"),
)
def rprec(block: Block, k: None, *, rel: float | None) -> Floats:
    """Precision at R, where R is the query's number of relevant documents.

    Formula: hits in the top R / R. Precision and recall are equal at that depth.

    Edges: a list shorter than R still divides by R.

    Use it: where queries differ much in how many relevant documents they have, so that no one k suits all.
    Not: where people see a fixed number of results.
    """
    hits, relevant = block.hits(rel), block.count_relevant(rel)
    return safe_ratio(hits.lists.counts(hits.rank <= relevant[hits.lists.owner]), relevant)
