"""Hold what a run says of simulated logs against their truth, beside what plain click rates would have said."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from udfs.evaluator import evaluate
from udfs.registry import parse

PAIR = ["query_id", "doc_id"]
BY_TRUTH, BY_CLICKS = "ndcg@10", "ndcg(gain=linear)@10"  # click rates are gains as they are, grades are not


@dataclass(frozen=True)
class Beside:
    """Differences in NDCG@10 from the baseline by system, and how labels and click rates follow the true grades."""

    gaps: pd.DataFrame  # by system: true, assay, clicks
    correlations: dict[str, float]  # rank correlation with the true grade over the judged pairs
    pairs: int

    @property
    def errors(self) -> pd.Series:
        """How far each column of differences is from the truth, on average."""
        return self.gaps[["assay", "clicks"]].sub(self.gaps["true"], axis=0).abs().mean()

    def best(self, column: str, baseline: str) -> str:
        """The system that is best by a column; the baseline where no other is better than it."""
        found = self.gaps[column]
        return str(found.idxmax()) if found.max() > 0 else baseline


def beside_truth(
    rankings: pd.DataFrame, truth: pd.DataFrame, labels: pd.DataFrame, comparisons: pd.DataFrame
) -> Beside:
    """Score the lists by the true grades and by click rates, and put what the run found between them.

    `labels` and `comparisons` are those that the run published. Click rates are used as is usual: every pair that was
    shown counts, and what was never shown is worth nothing.
    """
    whole = comparisons[(comparisons["segment"] == "all") & (comparisons["metric"] == parse(BY_TRUTH).key)]
    baseline = str(whole["baseline"].iloc[0])
    shown = labels[labels["ctr"].notna()].rename(columns={"grade": "label", "ctr": "grade"})
    gaps = pd.DataFrame(
        {
            "true": differences(rankings, truth, BY_TRUTH, baseline),
            "assay": whole.set_index("candidate")["delta"],
            "clicks": differences(rankings, shown[[*PAIR, "grade"]], BY_CLICKS, baseline),
        }
    )
    judged = labels[labels["grade"].notna()].merge(truth.rename(columns={"grade": "truth"}), on=PAIR)
    columns = {"labels": "lift_click", "clicks": "ctr"}
    found = {name: float(judged["truth"].corr(judged[c], method="spearman")) for name, c in columns.items()}
    return Beside(gaps.sort_values("true", ascending=False), found, len(judged))


def differences(rankings: pd.DataFrame, labels: pd.DataFrame, metric: str, baseline: str) -> pd.Series:
    """Per system the mean difference from the baseline over all queries, with unjudged documents counted as 0."""
    scored = evaluate(rankings, labels, [metric])
    means = scored.pivot(index="query_id", columns="system", values=parse(metric).key)
    return means.sub(means[baseline], axis=0).mean().drop(baseline)
