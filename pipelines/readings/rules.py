"""The register of readings, and the evidence that they look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.config import Config, Span
from udfs.registry import Spec

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Reading:
    """One sentence about one pair of systems, and the rule that says it."""

    rule: str
    baseline: str
    candidate: str
    text: str


def said_once(readings: Sequence[Mapping[str, Any]]) -> list[tuple[list[str], str, str]]:
    """Candidates, baseline and text of published readings; what is true of several candidates is said once."""
    said: dict[tuple[str, str], list[str]] = {}
    for one in readings:
        said.setdefault((one["baseline"], one["text"]), []).append(one["candidate"])
    return [(candidates, baseline, text) for (baseline, text), candidates in said.items()]


@dataclass(frozen=True)
class Evidence:
    """What all readings of a run may look at: never more than one row per segment and metric, and the movers."""

    comparisons: Sequence[Row]
    changes: Sequence[Row]
    relevant: float  # relevant documents per query that has any
    behaviour: bool  # labels made from behaviour rather than by people
    config: Config
    goal: Sequence[Row] = ()  # the comparisons over all queries on labels of the goal itself, such as purchases
    sensitivity: Sequence[Row] = ()  # headline comparisons by every way to count unjudged documents
    days: Span | None = None  # those that labels from behaviour come from, where it is known

    def pairs(self) -> Iterator[Pair]:
        for baseline, candidate in dict.fromkeys((row["baseline"], row["candidate"]) for row in self.comparisons):
            yield Pair(baseline, candidate, self)


@dataclass(frozen=True)
class Pair:
    """The evidence about one pair of systems."""

    baseline: str
    candidate: str
    evidence: Evidence

    @property
    def config(self) -> Config:
        return self.evidence.config

    @property
    def alpha(self) -> float:
        return 1 - self.config.statistics.confidence

    def rows(self, segment: str = "all") -> list[Row]:
        """The comparisons of this pair in one segment."""
        about = (self.baseline, self.candidate, segment)
        return [r for r in self.evidence.comparisons if (r["baseline"], r["candidate"], r["segment"]) == about]

    def row(self, spec: Spec) -> Row | None:
        """The comparison over all queries by one metric, where there is anything to say."""
        return next((r for r in self.rows() if r["metric"] == spec.key and r["p_value"] is not None), None)

    def named(self, name: str) -> list[tuple[Spec, Row]]:
        """Every metric of this name, with its comparison over all queries."""
        specs = [spec for spec in self.config.specs if spec.metric.name == name]
        return [(spec, row) for spec in specs if (row := self.row(spec)) is not None]

    def goal(self, spec: Spec) -> Row | None:
        """The comparison by one metric on labels of the goal, where these were evaluated too."""
        about = (self.baseline, self.candidate, "all", spec.key)
        found = (r for r in self.evidence.goal if (r["baseline"], r["candidate"], r["segment"], r["metric"]) == about)
        return next((r for r in found if r["p_value"] is not None), None)

    def ways(self, spec: Spec) -> dict[str, Row]:
        """The comparison by one metric for each way to count unjudged documents, where they were tried."""
        about = (self.baseline, self.candidate, spec.key)
        found = (r for r in self.evidence.sensitivity if (r["baseline"], r["candidate"], r["metric"]) == about)
        return {r["unjudged"]: r for r in found}

    @property
    def leading(self) -> Spec:
        """The first metric of the gate, or of the run."""
        gated = {condition.metric for condition in self.config.gate}
        return min(self.config.specs, key=lambda spec: spec.name not in gated)

    @property
    def headline(self) -> tuple[Spec, Row] | None:
        """The leading metric with its comparison over all queries, where there is anything to say."""
        row = self.row(self.leading)
        return None if row is None else (self.leading, row)

    def moved(self, row: Row) -> int:
        """+1 or −1 where a difference is beyond chance, 0 where it may be chance."""
        return 0 if row["p_value"] is None or row["p_value"] >= self.alpha else 1 if row["delta"] > 0 else -1


Rule = Callable[[Pair], str | None]
RULES: dict[str, Rule] = {}


def reading(rule: Rule) -> Rule:
    """Register a rule under its own name."""
    RULES[rule.__name__] = rule
    return rule


def change(row: Row) -> str:
    """A difference with its interval, as readings print it."""
    return f"{row['delta']:+.4f} [{row['delta_low']:+.4f}, {row['delta_high']:+.4f}]"
