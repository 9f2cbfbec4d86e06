"""Which queries count: a query whose list has too little judged says more about the labels than about the system.

The rule, in every table and page: a query counts for a metric where at least a minimum share of the top k of its list
is judged (`judged@k`, at the metric's own k), in a comparison for both systems. An empty list always counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.conventions import POINT_RULE
from udfs.ragged import Bools, Floats
from udfs.registry import MetricSpec, parse_metric

JUDGED = "judged"  # the metric that measures the share
UNSEEN = "unseen"  # the metric with the share of a list's weight on documents that nobody was shown
RETRIEVED = "retrieved"  # the column with the length of a list
SHOWN = "judged"  # the column with the number of its documents that were shown or judged
MIN_JUDGED = 0.7  # of a top k: below it, what is missing can outweigh what is known
# Two values that differ by no more are equal: a query is tied, a value lies on the edge of its bucket.
TIE = 1e-9


def resolve_min_judged(setting: float | Literal["auto"] | None, *, unjudged: str, from_behaviour: bool) -> float | None:
    """The minimum share for a query to count; None where every query does.

    `unjudged` is the rule of the run, never `auto`. The setting `auto` means a minimum only where labels come from
    behaviour and unjudged documents are left out.
    """
    if setting != "auto":
        return setting
    return MIN_JUDGED if from_behaviour and unjudged == POINT_RULE else None


def judged_column(spec: MetricSpec, columns: Collection[str]) -> str | None:
    """The column with the judged share at this metric's k; None where there is none, and for that share itself."""
    return None if spec.metric.name == JUDGED else _find_share(JUDGED, spec, columns)


def unseen_column(spec: MetricSpec, columns: Collection[str]) -> str | None:
    """The column with the share of this metric's top k that nobody was shown, by weight; None where there is none."""
    return _find_share(UNSEEN, spec, columns)


def _find_share(name: str, spec: MetricSpec, columns: Collection[str]) -> str | None:
    key = parse_metric(name if spec.k is None else f"{name}@{spec.k}").key
    return key if key in columns else None


def has_enough_judged(share: Floats, retrieved: Floats, minimum: float) -> Bools:
    """Where a list counts; a list that does not exist counts neither here nor as too little."""
    enough: Bools = _fill_shares(share, retrieved) >= minimum
    return enough


def has_too_little_judged(share: Floats, retrieved: Floats, minimum: float) -> Bools:
    """Where a list does not count because too little of it is judged."""
    too_little: Bools = _fill_shares(share, retrieved) < minimum
    return too_little


def _fill_shares(share: Floats, retrieved: Floats) -> Floats:
    """The judged shares: 1 for an empty list, 0 where the query has no label, NaN only where there is no list."""
    of_list = np.where(np.isnan(share) & ~np.isnan(retrieved), 0.0, share)
    filled: Floats = np.where(retrieved == 0, 1.0, of_list)
    return filled


@dataclass(frozen=True)
class CountingRule:
    """By what a query counts: a metric, the share of its list that is judged, and the baseline it is compared with."""

    metric: str  # the key of its column
    judged: str | None = None  # the column of the share, None where every list counts
    minimum: float = 0.0
    baseline: str | None = None

    def mark(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """Whether each row of `query_metrics` counts; in a comparison the baseline's row of its query must too.

        Null where the columns it needs are not there, as where lists are scored again by a few metrics.
        """
        if not {self.metric, self.judged or self.metric} <= columns.keys():
            return pa.nulls(len(columns["query_id"]), pa.bool_())
        counts = columns[self.metric].is_valid().to_numpy(zero_copy_only=False)
        if self.judged is not None:
            share, retrieved = (
                columns[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for name in (self.judged, RETRIEVED)
            )
            counts = counts & has_enough_judged(share, retrieved, self.minimum)
        if self.baseline is None:
            return pa.array(counts)
        of_baseline = pc.equal(columns["system"], pa.scalar(self.baseline, columns["system"].type))
        baseline = columns["query_id"].filter(pc.and_(of_baseline, pa.array(counts)))
        return pc.and_(pa.array(counts), pc.is_in(columns["query_id"], value_set=baseline))
