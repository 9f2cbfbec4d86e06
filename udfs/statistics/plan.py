"""What is to be estimated: the subjects, their segments and metrics, and the draws; travels to the workers."""

from __future__ import annotations

from dataclasses import dataclass

from udfs.registry import POOL

EVERYTHING = "all"
NO_VALUE = "(none)"  # what a query without a value in a segment's column is filed under
BETWEEN = " / "  # between the parts of a combined segment's name and value
RETRIEVED = "retrieved"  # the column that says how long a list is
TIE = 1e-9  # two systems whose values differ by no more are tied on a query


@dataclass(frozen=True)
class Plan:
    """Everything that the estimation of one run needs to know."""

    systems: tuple[str, ...]
    metrics: tuple[str, ...]  # keys, which are columns
    pooled: tuple[str, ...] = ()  # those of them with a column of pooled denominators
    segments: tuple[tuple[str, ...], ...] = ()  # beside everything
    pairs: tuple[tuple[str, str], ...] = ()  # baseline and candidate
    judged: tuple[str | None, ...] = ()  # per metric, the column that says how much of the list is judged
    min_judged: float = 0.0  # a query counts only where that column is at least this, in a comparison for both
    clustered: bool = False
    confidence: float = 0.95
    bootstrap: int = 0  # replicates; 0 for none
    percentiles: bool = False  # whether intervals come from them
    randomisation: int = 0
    seed: int = 0

    @property
    def with_pool(self) -> list[int]:
        """The places of the pooled ones among the metrics."""
        return [at for at, key in enumerate(self.metrics) if key in self.pooled]

    @property
    def cuts(self) -> tuple[tuple[str, ...], ...]:
        """Every way to cut the queries; the first is not to cut them."""
        return ((), *self.segments)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that some segment uses, once."""
        return tuple(dict.fromkeys(column for segment in self.segments for column in segment))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers that are read, once each."""
        pools = [key + POOL for key in self.pooled]
        judged = [name for name in self.judged if name]
        return tuple(dict.fromkeys([*self.metrics, *pools, *judged, *([RETRIEVED] if judged else [])]))
