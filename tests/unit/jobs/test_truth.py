"""The result of a run on a simulated log is compared with the truth and with click rates."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from jobs.support.truth import compare_with_truth


def test_a_run_is_compared_with_the_truth_and_with_click_rates() -> None:
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
    labels = pd.DataFrame([*seen, *unseen], columns=["query_id", "doc_id", "grade", "relevance", "ctr"])
    comparisons = pd.DataFrame(
        [
            ("old", "new", "all", "ndcg_at_10", 0.25, 0.1, 0.36, 2),
            ("old", "new", "intent", "ndcg_at_10", 9.0, 8.0, 10.0, 1),
            ("old", "new", "all", "judged_at_10", 9.0, 8.0, 10.0, 2),
        ],
        columns=["baseline", "candidate", "segment", "metric", "delta", "delta_low", "delta_high", "queries"],
    )
    comparison = compare_with_truth(rankings, truth, labels, comparisons)
    second = 1 / np.log2(3)
    clicks = [(0.2 + 0.5 * second) / (0.5 + 0.2 * second) - 1, second - 1]
    row = comparison.gaps.loc["new"]
    published = {"assay": 0.25, "low": 0.1, "high": 0.36, "queries": 2}
    assert row.to_dict() == pytest.approx({"true": 1 - second, "clicks": np.mean(clicks)} | published)
    assert not comparison.covers["new"], "the truth is .369"
    wider = replace(comparison, gaps=comparison.gaps.assign(high=0.37))
    assert wider.covers["new"] and wider.queries == 2
    assert comparison.errors["assay"] == pytest.approx(abs(0.25 - (1 - second)))
    assert (comparison.best("true", "old"), comparison.best("assay", "old"), comparison.best("clicks", "old")) == (
        "new",
        "new",
        "old",
    )
    assert comparison.pairs == 3
    # Over the three judged pairs, with true grades 0, 2, 0: lifts .9, 1.1, 1.2 and click rates .5, .2, .4.
    assert comparison.correlations == pytest.approx({"labels": 0.0, "clicks": -np.sqrt(3) / 2})
