"""The verdicts of the gate, and which of several is the worst."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

Outcome = Literal["pass", "undecidable", "fail"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)  # best first


class Verdict(BaseModel):
    """The gate's verdict on one condition, one system and one value of its segment."""

    model_config = ConfigDict(frozen=True)

    condition: str
    candidate: str
    segment: str
    value: str
    metric: str
    verdict: Outcome
    reason: str
    against_baseline: bool
    warning: str = ""


def find_worst_outcome(outcomes: Iterable[str], default: str = "none") -> str:
    """The worst of several outcomes; `default` where there are none."""
    return max(outcomes, key=OUTCOMES.index, default=default)


def find_worst_verdicts(verdicts: Sequence[Verdict]) -> dict[tuple[str, ...], str]:
    """The worst outcome for each candidate, segment, value and metric that is compared with the baseline."""
    by_subject: dict[tuple[str, ...], list[str]] = {}
    for v in verdicts:
        if v.against_baseline:
            by_subject.setdefault((v.candidate, v.segment, v.value, v.metric), []).append(v.verdict)
    return {subject: find_worst_outcome(outcomes) for subject, outcomes in by_subject.items()}


def join_conditions(verdicts: Sequence[Verdict]) -> dict[tuple[str, ...], str]:
    """The conditions on each candidate, segment, value and metric that is compared with the baseline, as one text."""
    by_subject: dict[tuple[str, ...], list[str]] = {}
    for v in verdicts:
        if v.against_baseline:
            by_subject.setdefault((v.candidate, v.segment, v.value, v.metric), []).append(v.condition)
    return {subject: "; ".join(dict.fromkeys(conditions)) for subject, conditions in by_subject.items()}
