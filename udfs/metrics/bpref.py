"""Binary preference."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.graded import is_relevant
from udfs.ragged import Floats
from udfs.registry import REL, metric


@metric(
    latex=r"\mathrm{bpref} = \frac{1}{R} \sum_{r} \left( 1 - \frac{\min(n_r, R)}{\min(N, R)} \right)",
    reference="Buckley and Voorhees, Retrieval evaluation with incomplete information, SIGIR 2004; trec_eval bpref",
    parameters={"rel": REL},
)
def bpref(block: Block, k: int | None, *, rel: float | None) -> Floats:
    """How seldom documents judged not relevant stand above the relevant ones.

    Formula: 1/R · Σ over relevant documents r of 1 − min(n_r, R) / min(N, R), where R and N count the query's
    relevant and judged non-relevant documents and n_r those of the latter that stand above r.

    Edges: unjudged documents are ignored wherever they stand. A negative grade counts as unjudged here, as in
    trec_eval. With a cut-off, only relevant documents in the top k add to the sum.

    Use it: with incomplete judgments, to check whether another metric moved only because of unjudged documents.
    Not: where nearly all of the top is judged; or where no document was judged non-relevant, since it is then recall.
    """
    hits, relevant = block.hits(rel), block.count_relevant(rel)

    def preferred() -> Floats:
        rejected = (block.grade >= 0) & ~is_relevant(block.grade, rel)
        judged_bad = block.labelled.counts((block.labels >= 0) & ~is_relevant(block.labels, rel))
        above = block.ranked.running_counts(rejected)[hits.rows]
        most = relevant[hits.lists.owner]
        return 1.0 - safe_ratio(np.minimum(above, most), np.minimum(judged_bad[hits.lists.owner], most))

    return safe_ratio(hits.sums(block.cached(("preferred", rel), preferred), k), relevant)
