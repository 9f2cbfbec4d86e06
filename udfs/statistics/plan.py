"""The plan of an estimation: subjects, segments, metrics and draws; it is sent to the workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from udfs.registry import POOL
from udfs.statistics.counting import RETRIEVED, SHOWN

EVERYTHING = "all"
NO_VALUE = "(none)"  # the value of a query without one in a segment's column
BETWEEN = " / "  # joins the parts of a combined segment's name and value

Row = Mapping[str, Any]  # an estimate or a row of a result, by column


def name_value(value: str | None) -> str:
    """Name a value of a segment's column; a value that could be taken for another name is quoted as in JSON."""
    if value is None:
        return NO_VALUE
    # Spaces around it: `a /` beside `b` and `a` beside `/ b` would be joined to the same text.
    ambiguous = value == NO_VALUE or BETWEEN in f" {value} " or value[:1] == '"'
    return json.dumps(value, ensure_ascii=False) if ambiguous else value


@dataclass(frozen=True)
class Plan:
    """Everything that the estimation of one run depends on."""

    systems: tuple[str, ...]
    metrics: tuple[str, ...]  # keys, which are columns
    names: tuple[str, ...] = ()  # of the metrics as they are written; their keys where not given
    pooled: tuple[str, ...] = ()  # those of them with a column of pooled denominators
    segments: tuple[tuple[str, ...], ...] = ()  # beside everything
    pairs: tuple[tuple[str, str], ...] = ()  # baseline and candidate
    judged: tuple[str | None, ...] = ()  # per metric, the column with the judged share, if queries count by it
    min_judged: float = 0.0  # the least share for a query to count
    clustered: bool = False
    by_traffic: bool = False  # whether a query counts by its weight, and not as one; units are then of unequal size
    confidence: float = 0.95
    bootstrap: int = 0  # replicates; 0 for none
    percentiles: bool = False  # whether intervals come from them
    randomisation: int = 0
    seed: int = 0
    draw_sets: tuple[tuple[str, int], ...] = ()  # sets of drawn labels with their sizes, in the order of the draws
    draw_metrics: tuple[str, ...] = ()  # those of the metrics that have draws, in the order of the draws
    constant_metrics: tuple[str, ...] = ()  # those of them that are the same in every draw, and have no column of draws
    not_vouched: tuple[str, ...] = ()  # systems that never served and may have learned from clicks
    unseen: tuple[str | None, ...] = ()  # per metric, the column with the share of its weight on unseen documents
    exponents: tuple[float, ...] = ()  # the change of the examination curve's exponent in each posterior draw

    @property
    def with_pool(self) -> list[int]:
        """The positions of the pooled metrics."""
        return [at for at, key in enumerate(self.metrics) if key in self.pooled]

    @property
    def draws(self) -> int:
        """The number of draws of all sets."""
        return sum(size for _, size in self.draw_sets)

    @property
    def varying(self) -> list[bool]:
        """Which of the metrics with draws differ between draws."""
        return [key not in self.constant_metrics for key in self.draw_metrics]

    def find_set(self, name: str) -> slice | None:
        """Where the draws of a set are among all draws; None where there is no such set."""
        start = 0
        for each, size in self.draw_sets:
            if each == name:
                return slice(start, start + size)
            start += size
        return None

    @property
    def cuts(self) -> tuple[tuple[str, ...], ...]:
        """Every way to group the queries; the first has all in one group."""
        return ((), *self.segments)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all segments, once each."""
        return tuple(dict.fromkeys(column for segment in self.segments for column in segment))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers that are read, once each."""
        pools = [key + POOL for key in self.pooled]
        judged = [name for name in self.judged if name]
        unseen = [name for name in self.unseen if name]
        counts = [*([RETRIEVED] if judged else []), *([SHOWN] if unseen else [])]
        return tuple(dict.fromkeys([*self.metrics, *pools, *judged, *unseen, *counts]))
