"""The statistics of a log as arrays, small enough for one machine: the input of every estimator."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipelines.labels.history import History, count_states

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Impressions and clicks of single pairs, by position (from 0) and history."""

    pair: Ints  # dense number of the query-document pair
    position: Ints
    history: Ints  # the state of the estimator's history, 0 without one
    shown: Floats
    clicks: Floats
    bucket: Ints

    @property
    def pairs(self) -> int:
        return int(self.pair.max()) + 1 if self.pair.size else 0

    def where(self, mask: NDArray[np.bool_]) -> Cells:
        """The cells that a mask selects, with their pairs renumbered."""
        return Cells(
            pair=np.unique(self.pair[mask], return_inverse=True)[1],
            position=self.position[mask],
            history=self.history[mask],
            shown=self.shown[mask],
            clicks=self.clicks[mask],
            bucket=self.bucket[mask],
        )


@dataclass(frozen=True)
class PositionEvidence:
    """Sums over the pairs of a context, by jackknife bucket (first axis) and position.

    `edge_clicks[b, k, j]` = Σ ω·C_k/N_k and `edge_rest[b, k, j]` = Σ ω·(1 − C_k/N_k) over the documents seen at both
    k and j, ω = N_k·N_j/(N_k + N_j); `edge_pairs` is the number of these documents.
    """

    shown: Floats  # [bucket, position, history]
    clicks: Floats
    edge_clicks: Floats
    edge_rest: Floats
    edge_pairs: Floats
    shuffled_shown: Floats  # [bucket, position]
    shuffled_clicks: Floats
    cells: Cells

    @property
    def positions(self) -> int:
        return int(self.shown.shape[1])

    def sums_only(self) -> PositionEvidence:
        """The same evidence without the counts of single pairs."""
        return replace(self, cells=self.cells.where(np.zeros(self.cells.pair.size, dtype=np.bool_)))

    def without(self, bucket: int) -> PositionEvidence:
        """The same evidence with one bucket of queries left out."""
        kept = np.arange(self.shown.shape[0]) != bucket
        arrays = {
            name: getattr(self, name)[kept]
            for name in (
                "shown", "clicks", "edge_clicks", "edge_rest", "edge_pairs", "shuffled_shown", "shuffled_clicks"
            )
        }  # fmt: skip
        return replace(self, **arrays, cells=self.cells.where(self.cells.bucket != bucket))


def gather_evidence(
    statistics: pd.DataFrame, *, positions: int, buckets: int, history: History | None = None
) -> PositionEvidence:
    """Arrays from rows (statistic, context, bucket, pair, position, other, shown, clicks, weight)."""
    states = count_states(history, positions)
    by_kind = dict(tuple(statistics.groupby("statistic")))
    empty = statistics.iloc[:0]

    def sums(kind: str, column: str, shape: tuple[int, ...]) -> Floats:
        rows = by_kind.get(kind, empty)
        flat = np.zeros(int(np.prod(shape)))
        if len(rows):
            axes = [rows["bucket"].to_numpy(np.int64), rows["position"].to_numpy(np.int64) - 1]
            if len(shape) == 3:
                axes.append(rows["other"].to_numpy(np.int64) - (1 if kind == "edge" else 0))
            np.add.at(flat, np.ravel_multi_index(tuple(axes), shape), rows[column].to_numpy(np.float64))
        return flat.reshape(shape)

    place, edge, flat_place = (buckets, positions, states), (buckets, positions, positions), (buckets, positions)
    return PositionEvidence(
        shown=sums("place", "shown", place),
        clicks=sums("place", "clicks", place),
        edge_clicks=sums("edge", "clicks", edge),
        edge_rest=sums("edge", "shown", edge) - sums("edge", "clicks", edge),
        edge_pairs=sums("edge", "weight", edge),
        shuffled_shown=sums("shuffled", "shown", flat_place),
        shuffled_clicks=sums("shuffled", "clicks", flat_place),
        cells=_build_cells(by_kind.get("cell", empty)),
    )


def _build_cells(rows: pd.DataFrame) -> Cells:
    # Sorted, because sums of floats depend on their order, and the order of rows on the partitioning.
    rows = rows.sort_values(["pair", "position", "other", "context"])
    return Cells(
        pair=np.unique(rows["pair"].to_numpy(np.int64), return_inverse=True)[1].astype(np.int64),
        position=rows["position"].to_numpy(np.int64) - 1,
        history=rows["other"].to_numpy(np.int64),
        shown=rows["shown"].to_numpy(np.float64),
        clicks=rows["clicks"].to_numpy(np.float64),
        bucket=rows["bucket"].to_numpy(np.int64),
    )
