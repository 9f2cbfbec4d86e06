"""Histograms of per-query values and differences, counted in one pass of bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.warehouse.tables import RunTables
from udfs.statistics.counting import TIE

STEPS = 10  # buckets of 0.1

Counts = npt.NDArray[np.int64]


def count_histogram(values: npt.NDArray[np.float64]) -> Counts:
    """Counts in buckets of 0.1 from 0 to 1; the first and the last are below 0 and above 1. NaN is left out."""
    defined = values[~np.isnan(values)]
    bucket = np.clip(np.floor(defined * STEPS + TIE), -1, STEPS).astype(np.int64)
    bucket[(defined <= 1 + TIE) & (bucket == STEPS)] = STEPS - 1  # 1 itself belongs to the last bucket
    return np.bincount(bucket + 1, minlength=STEPS + 2)


def count_distributions(
    run: RunTables, systems: Sequence[str], metrics: Sequence[str]
) -> dict[tuple[str, str], Counts]:
    """The histogram of per-query values, by system and metric."""
    histograms = {(system, metric): np.zeros(STEPS + 2, np.int64) for system in systems for metric in metrics}
    for batch in run.batches("query_metrics", ["system", *metrics]):
        place = pc.index_in(batch["system"], value_set=pa.array(systems, pa.string())).to_numpy(zero_copy_only=False)
        for metric in (name for name in metrics if name in batch.schema.names):
            values = batch[metric].to_numpy(zero_copy_only=False)
            for number, system in enumerate(systems):
                histograms[system, metric] += count_histogram(values[place == number])
    return histograms


@dataclass
class DeltaCounts:
    """Paired differences of one metric in buckets of 0.1 from −1 to 1, and how many are ties."""

    queries: int = 0
    ties: int = 0
    counts: Counts = field(default_factory=lambda: np.zeros(2 * STEPS, np.int64))

    def add(self, before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]) -> None:
        """Add the values of some queries; those where either is undefined are left out."""
        delta = after - before
        delta = delta[~np.isnan(delta)]
        moved = delta[np.abs(delta) > TIE]
        self.queries += len(delta)
        self.ties += len(delta) - len(moved)
        # A difference of exactly 0.1 belongs to the smaller bucket, on both sides of 0.
        size = np.clip(np.ceil(np.abs(moved) * STEPS - TIE), 1, STEPS).astype(np.int64)
        self.counts += np.bincount(np.where(moved > 0, STEPS - 1 + size, STEPS - size), minlength=2 * STEPS)
