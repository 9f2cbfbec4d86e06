"""Compare the result of a run on a simulated log with the truth, and with the result by plain click rates."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from udfs.evaluator import evaluate_tables
from udfs.registry import parse_metric

PAIR = ["query_id", "doc_id"]
BY_TRUTH, BY_CLICKS = "ndcg@10", "ndcg(gain=linear)@10"  # click rates are gains themselves, grades are not


@dataclass(frozen=True)
class TruthComparison:
    """Differences in NDCG@10 from the baseline by system, and correlations with the true grades."""

    gaps: pd.DataFrame  # by system: true, assay, its interval low to high, the queries compared, clicks
    correlations: dict[str, float]  # rank correlation with the true grade over the judged pairs
    pairs: int
    queries: int  # all queries that there are

    @property
    def covers(self) -> pd.Series:
        """By system, whether the true difference lies in the interval of the run."""
        return self.gaps["true"].between(self.gaps["low"], self.gaps["high"])

    @property
    def errors(self) -> pd.Series:
        """Mean absolute error of each column of differences."""
        return self.gaps[["assay", "clicks"]].sub(self.gaps["true"], axis=0).abs().mean()

    def best(self, column: str, baseline: str) -> str:
        """The best system by a column; the baseline where no other is better."""
        gaps = self.gaps[column]
        return str(gaps.idxmax()) if gaps.max() > 0 else baseline


def compare_with_truth(
    rankings: pd.DataFrame, truth: pd.DataFrame, labels: pd.DataFrame, comparisons: pd.DataFrame
) -> TruthComparison:
    """Score the lists by the true grades and by click rates, and put the differences of the run beside them.

    `labels` and `comparisons` are published tables of the run. Click rates are used in the naive way: every pair that
    was shown counts, and pairs that were not have gain 0.
    """
    whole = comparisons[(comparisons["segment"] == "all") & (comparisons["metric"] == parse_metric(BY_TRUTH).key)]
    baseline, of_run = str(whole["baseline"].iloc[0]), whole.set_index("candidate")
    shown = labels[labels["ctr"].notna()].rename(columns={"grade": "label", "ctr": "grade"})
    gaps = pd.DataFrame(
        {
            "true": mean_differences(rankings, truth, BY_TRUTH, baseline),
            "assay": of_run["delta"],
            "low": of_run["delta_low"],
            "high": of_run["delta_high"],
            "queries": of_run["queries"],
            "clicks": mean_differences(rankings, shown[[*PAIR, "grade"]], BY_CLICKS, baseline),
        }
    )
    judged = labels[labels["grade"].notna()].merge(truth.rename(columns={"grade": "truth"}), on=PAIR)
    columns = {"labels": "relevance", "clicks": "ctr"}
    correlations = {name: float(judged["truth"].corr(judged[c], method="spearman")) for name, c in columns.items()}
    queries = rankings["query_id"].nunique()
    return TruthComparison(gaps.sort_values("true", ascending=False), correlations, len(judged), queries)


def mean_differences(rankings: pd.DataFrame, labels: pd.DataFrame, metric: str, baseline: str) -> pd.Series:
    """Per system the mean difference from the baseline over all queries, with unjudged documents counted as 0."""
    scored = evaluate_tables(rankings, labels, [metric])
    means = scored.pivot(index="query_id", columns="system", values=parse_metric(metric).key)
    return means.sub(means[baseline], axis=0).mean().drop(baseline)
