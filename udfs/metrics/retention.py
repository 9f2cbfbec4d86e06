"""The share of an earlier stage's relevant documents that a later stage keeps."""

from __future__ import annotations

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.graded import is_relevant
from udfs.pairs import find_shared_documents
from udfs.ragged import Floats, Ints
from udfs.registry import REL, Parameter, metric


def _count_handed(block: Block, other: Block, k: int, *, from_: float, rel: float | None) -> Ints:
    """Per list, the relevant documents that the earlier stage handed over."""
    return other.ranked.counts(is_relevant(other.grade, rel) & (other.ranked.place <= from_))


@metric(
    reference="the hand-over between the stages of a cascade; as in Wang, Lin and Metzler, A cascade ranking model, "
    "SIGIR 2011",
    parameters={
        "from": Parameter(200.0, "how many documents the earlier stage hands over", minimum=1.0),
        "rel": REL,
    },
    cutoff="required",
    defined="kernel",
    condensable=False,
    needs=("earlier",),
    reads=("doc",),
    scope="pair",
    pool=_count_handed,
    ratio=("kept", "relevant documents handed over"),
)
def retention(block: Block, other: Block, k: int, *, from_: float, rel: float | None) -> Floats:
    """Of the relevant documents that an earlier stage found, the share that the later stage keeps at its top.

    Formula: relevant documents in both the earlier stage's top `from` and the later stage's top k / relevant
    documents in the earlier stage's top `from`.

    Edges: a query where the earlier stage found nothing relevant counts as one without relevant documents: the
    later stage cannot be blamed. Relevant documents that the later stage finds by itself are not counted.

    Use it: to find the stage at which a cascade loses what it had.
    Not: as a measure of the whole cascade (recall, ndcg).
    """
    common = find_shared_documents(block, other)
    relevant = is_relevant(other.grade[common.other_row], rel)
    kept = common.lists.counts(relevant & (common.other_rank <= from_) & (common.rank <= k))
    return safe_ratio(kept, _count_handed(block, other, k, from_=from_, rel=rel), empty=np.nan)
