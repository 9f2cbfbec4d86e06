"""What a log says about positions, small enough for one machine: the input of every estimator."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Impressions and clicks of single pairs, by place. Positions and last clicks count from 0; −1 means none."""

    pair: Ints  # dense number of the query-document pair
    position: Ints
    last_click: Ints  # position of the nearest click above, 0 for none, k for the k-th result
    after: Ints  # dense number of the pair directly above that was clicked, or −1
    shown: Floats
    clicks: Floats
    bucket: Ints

    @property
    def pairs(self) -> int:
        return int(self.pair.max()) + 1 if self.pair.size else 0

    def where(self, mask: NDArray[np.bool_]) -> Cells:
        """The cells that a mask chooses, pairs numbered anew."""
        keys = np.concatenate([self.pair[mask], self.after[mask]])
        names, dense = np.unique(keys, return_inverse=True)
        dense = dense - (1 if names.size and names[0] == -1 else 0)
        pair, after = np.split(dense, 2)
        places = (self.position[mask], self.last_click[mask], after)
        return Cells(pair, *places, self.shown[mask], self.clicks[mask], self.bucket[mask])


@dataclass(frozen=True)
class Evidence:
    """Sums over the pairs of a context, by jackknife bucket (first axis) and position.

    `edge_clicks[b, k, j]` = Σ ω·C_k/N_k and `edge_rest[b, k, j]` = Σ ω·(1 − C_k/N_k) over the documents seen at both
    k and j, ω = N_k·N_j/(N_k + N_j); `edge_pairs` is how many documents these were.
    """

    shown: Floats  # [bucket, position, last click]
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

    def sums_only(self) -> Evidence:
        """The same evidence without the counts of single pairs."""
        return replace(self, cells=self.cells.where(np.zeros(self.cells.pair.size, dtype=np.bool_)))

    def without(self, bucket: int) -> Evidence:
        """The same evidence with one bucket of queries left out."""
        kept = np.arange(self.shown.shape[0]) != bucket
        arrays = {
            name: getattr(self, name)[kept]
            for name in (
                "shown", "clicks", "edge_clicks", "edge_rest", "edge_pairs", "shuffled_shown", "shuffled_clicks"
            )
        }  # fmt: skip
        return replace(self, **arrays, cells=self.cells.where(self.cells.bucket != bucket))


def gather(statistics: pd.DataFrame, *, positions: int, buckets: int, history: bool) -> Evidence:
    """Arrays from rows (statistic, bucket, pair, after, position, other, shown, clicks, weight)."""
    last = positions + 1 if history else 1
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

    place, edge, flat_place = (buckets, positions, last), (buckets, positions, positions), (buckets, positions)
    return Evidence(
        shown=sums("place", "shown", place),
        clicks=sums("place", "clicks", place),
        edge_clicks=sums("edge", "clicks", edge),
        edge_rest=sums("edge", "shown", edge) - sums("edge", "clicks", edge),
        edge_pairs=sums("edge", "weight", edge),
        shuffled_shown=sums("shuffled", "shown", flat_place),
        shuffled_clicks=sums("shuffled", "clicks", flat_place),
        cells=_cells(by_kind.get("cell", empty)),
    )


def _cells(rows: pd.DataFrame) -> Cells:
    # Sorted, because sums of floats depend on their order and the order of rows on the partitioning.
    rows = rows.sort_values(["pair", "position", "other", "after"])
    names, dense = np.unique(
        np.concatenate([rows["pair"].to_numpy(np.int64), rows["after"].dropna().to_numpy(np.int64)]),
        return_inverse=True,
    )
    del names
    after = np.full(len(rows), -1, dtype=np.int64)
    after[rows["after"].notna().to_numpy()] = dense[len(rows) :]
    return Cells(
        pair=dense[: len(rows)].astype(np.int64),
        position=rows["position"].to_numpy(np.int64) - 1,
        last_click=rows["other"].to_numpy(np.int64),
        after=after,
        shown=rows["shown"].to_numpy(np.float64),
        clicks=rows["clicks"].to_numpy(np.float64),
        bucket=rows["bucket"].to_numpy(np.int64),
    )
