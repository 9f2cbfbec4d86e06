"""Grades are distributed as before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pipelines.quality.registry import Finding, QualityFacts, check


def compute_stability_index(now: Mapping[str, int], before: Mapping[str, int]) -> float:
    """The population stability index: Σ (p − q)·ln(p/q) over the grades, with half a label added to each."""
    grades = sorted(set(now) | set(before))
    total_now, total_before = (sum(counts.values()) + 0.5 * len(grades) for counts in (now, before))
    shares = [((now.get(g, 0) + 0.5) / total_now, (before.get(g, 0) + 0.5) / total_before) for g in grades]
    return sum((p - q) * math.log(p / q) for p, q in shares)


@check(
    tables="judgments and labels",
    severity="warn",
    threshold=0.2,
    measures="largest population stability index against the previous run",
    advice="compare the denoise funnel and the propensities of both runs, or who judged; the metrics of the two runs "
    "are not comparable",
)
def label_drift(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """When the grades change, the metrics change even though no system did."""
    for table, figures in facts.select_tables("grades"):
        grades, before = figures["grades"], facts.find_previous(table, "grades")
        if before is None:
            continue
        index = compute_stability_index(grades, before)
        yield Finding(
            table=table,
            passed=index <= threshold,
            observed=f"stability index {index:.3f}; labels by grade "
            + ", ".join(f"{grade}: {count:,}" for grade, count in sorted(grades.items())),
            allowed=f"at most {threshold:g}",
            column="grade",
            rows=sum(grades.values()),
        )
