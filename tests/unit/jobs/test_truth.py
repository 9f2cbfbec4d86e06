"""What a run says of a simulated log, beside its truth and beside click rates."""

import numpy as np
import pandas as pd
import pytest

from jobs.truth import beside_truth


def test_a_run_stands_between_the_truth_and_click_rates() -> None:
    # `old` puts the poor document first, and gets the clicks there; `new` puts the good one first.
    queries = ["q1", "q2"]
    lists = {"old": ("poor", "good"), "new": ("good", "poor")}
    rankings = pd.DataFrame(
        [(s, q, d, rank) for s, docs in lists.items() for q in queries for rank, d in enumerate(docs, 1)],
        columns=["system", "query_id", "doc_id", "rank"],
    )
    truth = pd.DataFrame([(q, d, g) for q in queries for d, g in (("good", 2), ("poor", 0))])
    truth.columns = pd.Index(["query_id", "doc_id", "grade"])
    seen = [("q1", "poor", 0.0, 0.9, 0.5), ("q1", "good", 3.0, 1.1, 0.2), ("q2", "poor", 1.0, 1.2, 0.4)]
    unseen = [("q2", "good", None, None, None)]
    labels = pd.DataFrame([*seen, *unseen], columns=["query_id", "doc_id", "grade", "lift_click", "ctr"])
    comparisons = pd.DataFrame(
        [
            ("old", "new", "all", "ndcg_at_10", 0.25, 2),
            ("old", "new", "intent", "ndcg_at_10", 9.0, 1),
            ("old", "new", "all", "judged_at_10", 9.0, 2),
        ],
        columns=["baseline", "candidate", "segment", "metric", "delta", "queries"],
    )
    found = beside_truth(rankings, truth, labels, comparisons)
    second = 1 / np.log2(3)
    clicks = [(0.2 + 0.5 * second) / (0.5 + 0.2 * second) - 1, second - 1]
    row = found.gaps.loc["new"]
    assert row.to_dict() == pytest.approx({"true": 1 - second, "assay": 0.25, "clicks": np.mean(clicks)})
    assert found.errors["assay"] == pytest.approx(abs(0.25 - (1 - second)))
    assert (found.best("true", "old"), found.best("assay", "old"), found.best("clicks", "old")) == ("new", "new", "old")
    assert found.pairs == 3
    # Over the three judged pairs, with true grades 0, 2, 0: lifts .9, 1.1, 1.2 and click rates .5, .2, .4.
    assert found.correlations == pytest.approx({"labels": 0.0, "clicks": -np.sqrt(3) / 2})
