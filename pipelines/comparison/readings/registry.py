"""The registry of readings, and the rows that a rule may read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pipelines.comparison.deciding import LogExposure
from pipelines.comparison.headline import select_headline_metrics
from pipelines.comparison.judging.apply import SheetCount
from pipelines.comparison.judging.correction import use_correction
from pipelines.config.model import Config, DateRange
from schemas.registry import Registry
from udfs.posterior.opinions import OpinionGain
from udfs.registry import MetricSpec
from udfs.statistics.plan import EVERYTHING, Row


@dataclass(frozen=True)
class Reading:
    """One sentence about one pair of systems, and the rule that wrote it."""

    rule: str
    baseline: str
    candidate: str
    text: str


@dataclass(frozen=True)
class ReadingContext:
    """What the readings of a run are based on: at most one row per segment and metric, and the movers."""

    comparisons: Sequence[Row]
    changes: Sequence[Row]
    relevant: float  # relevant documents per query that has any
    behaviour: bool  # labels made from behaviour rather than by people
    config: Config
    goal: Sequence[Row] = ()  # the comparisons over all queries on labels of the goal itself, such as purchases
    sensitivity: Sequence[Row] = ()  # headline comparisons by every way to count unjudged documents
    gains: Sequence[OpinionGain] = ()  # what opinions add to the labels: all of them, then each of several
    sheet_counts: Sequence[SheetCount] = ()  # how much of the sheet of judged queries is graded, per pair and metric
    days: DateRange | None = None  # those that labels from behaviour come from, where the log is kept by day
    learned_share: float = 0.0  # of the log's impressions, on days that compared systems learned from
    exposure: LogExposure | None = None  # what the log offers to a document, where an interval may be a hull

    def pairs(self) -> Iterator[ComparedPair]:
        for baseline, candidate in dict.fromkeys((row["baseline"], row["candidate"]) for row in self.comparisons):
            yield ComparedPair(baseline, candidate, self)


@dataclass(frozen=True)
class ComparedPair:
    """The rows about one pair of systems."""

    baseline: str
    candidate: str
    context: ReadingContext

    @property
    def config(self) -> Config:
        return self.context.config

    @property
    def alpha(self) -> float:
        return 1 - self.config.statistics.confidence

    def select(self, rows: Sequence[Row], **columns: str) -> list[Row]:
        """The rows about this pair whose columns have these values."""
        values = {"baseline": self.baseline, "candidate": self.candidate} | columns
        return [row for row in rows if all(row[name] == value for name, value in values.items())]

    def rows(self, segment: str = EVERYTHING) -> list[Row]:
        """The comparisons of this pair in one segment."""
        return self.select(self.context.comparisons, segment=segment)

    def row(self, spec: MetricSpec) -> Row | None:
        """The comparison over all queries by one metric, where it has a test."""
        return next((r for r in self.rows() if r["metric"] == spec.key and r["p_value"] is not None), None)

    def by_name(self, name: str) -> list[tuple[MetricSpec, Row]]:
        """Every metric of this name, with its comparison over all queries."""
        specs = [spec for spec in self.config.specs if spec.metric.name == name]
        return [(spec, row) for spec in specs if (row := self.row(spec)) is not None]

    def by_goal(self, spec: MetricSpec) -> Row | None:
        """The comparison by one metric on labels of the goal, where these were evaluated too."""
        rows = self.select(self.context.goal, segment=EVERYTHING, metric=spec.key)
        return next((row for row in rows if row["p_value"] is not None), None)

    def by_unjudged(self, spec: MetricSpec) -> dict[str, Row]:
        """The comparison by one metric for each way to count unjudged documents, where there are several."""
        return {row["unjudged"]: row for row in self.select(self.context.sensitivity, metric=spec.key)}

    @property
    def headline_metric(self) -> MetricSpec:
        """The first of the headline metrics."""
        return select_headline_metrics(self.config.specs, {condition.metric for condition in self.config.gate})[0]

    @property
    def headline(self) -> tuple[MetricSpec, Row] | None:
        """The headline metric with its comparison over all queries, where it has a test."""
        row = self.row(self.headline_metric)
        return None if row is None else (self.headline_metric, row)

    def significant_headline(self) -> tuple[MetricSpec, Row] | None:
        """The headline, where its difference is significant."""
        return None if self.headline is None or not self.direction(self.headline[1]) else self.headline

    def direction(self, row: Row) -> int:
        """+1 or −1 where a difference is significant, 0 where it is not."""
        delta = use_correction(row)["delta"]
        return 0 if row["p_value"] is None or row["p_value"] >= self.alpha else 1 if delta > 0 else -1


ReadingRule = Callable[[ComparedPair], str | None]
READINGS: Registry[ReadingRule] = Registry("reading", "pipelines.comparison.readings")


def reading(rule: ReadingRule) -> ReadingRule:
    """Register a rule under its own name."""
    return READINGS.register(rule.__name__, rule)


def collect_readings(context: ReadingContext) -> Iterator[Reading]:
    """Every reading that fires, pair by pair."""
    for pair in context.pairs():
        for name, rule in READINGS.items():
            text = rule(pair)
            if text is not None:
                yield Reading(name, pair.baseline, pair.candidate, _capitalise(text, pair))


def _capitalise(text: str, pair: ComparedPair) -> str:
    """A sentence begins with a capital letter, unless with the name of a metric or a system."""
    names = {spec.name for spec in pair.config.specs} | {pair.baseline, pair.candidate}
    return text if text.startswith(tuple(names)) else text[:1].upper() + text[1:]


def format_change(row: Row) -> str:
    """A difference with its interval, as readings print it."""
    return f"{row['delta']:+.4f} [{row['delta_low']:+.4f}, {row['delta_high']:+.4f}]"
