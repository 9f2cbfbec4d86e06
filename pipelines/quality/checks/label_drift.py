"""Whether grades are distributed as before."""

import math
from collections.abc import Iterator, Mapping

from pipelines.quality.registry import Facts, Finding, check


def stability_index(now: Mapping[str, int], before: Mapping[str, int]) -> float:
    """The population stability index: Σ (p − q)·ln(p/q) over the grades, half a label added to each."""
    grades = sorted(set(now) | set(before))
    total, former = sum(now.values()) + 0.5 * len(grades), sum(before.values()) + 0.5 * len(grades)
    shares = [((now.get(g, 0) + 0.5) / total, (before.get(g, 0) + 0.5) / former) for g in grades]
    return sum((p - q) * math.log(p / q) for p, q in shares)


@check(
    tables="judgments and labels",
    severity="warn",
    threshold=0.2,
    measures="largest population stability index against the previous run",
    advice="look at the denoise funnel and the propensities of both runs, or at who judged; metrics of the two runs "
    "are not comparable",
)
def label_drift(facts: Facts, threshold: float) -> Iterator[Finding]:
    """When the grades change, the numbers change though no system did."""
    for name, known in facts.having("grades"):
        before = facts.previous(name, "grades")
        if before is None:
            continue
        found = stability_index(known["grades"], before)
        yield Finding(
            name,
            found <= threshold,
            observed=f"stability index {found:.3f}; labels by grade "
            + ", ".join(f"{grade}: {count:,}" for grade, count in sorted(known["grades"].items())),
            allowed=f"at most {threshold:g}",
            column="grade",
            rows=sum(known["grades"].values()),
        )
