"""The counts that a suite needs: requested in a first run, and filled in for a second one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column


class MetricKey(NamedTuple):
    """One count of one suite: the metric of Great Expectations and what it is computed of."""

    table: str
    metric: str
    column: str
    arguments: str


@dataclass
class CountSheet:
    """What to count over all rows of a table, and the counts once they are computed."""

    table: str
    requested: dict[MetricKey, Column] = field(default_factory=dict)
    counts: dict[MetricKey, int] = field(default_factory=dict)

    def look_up(self, key: MetricKey, column: Column) -> int:
        """The count, if computed; otherwise it is requested, and 0 lets the suite continue."""
        self.requested.setdefault(key, column)
        return self.counts.get(key, 0)
