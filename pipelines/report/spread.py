"""How per-query values and differences spread, counted in one pass of bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.report.published import Published

STEPS = 10  # buckets of 0.1
TIE = 1e-9
ROWS_AT_ONCE = 2_000_000  # paired in memory; beyond that, rows are first laid out by the hash of their query

Counts = npt.NDArray[np.int64]


def histogram(values: npt.NDArray[np.float64]) -> Counts:
    """Counts in buckets of 0.1 from 0 to 1; the first and the last count what lies outside. NaN is left out."""
    known = values[~np.isnan(values)]
    place = np.clip(np.floor(known * STEPS + TIE), -1, STEPS).astype(np.int64)
    place[(known <= 1 + TIE) & (place == STEPS)] = STEPS - 1  # 1 itself belongs to the last bucket
    return np.bincount(place + 1, minlength=STEPS + 2)


def spreads(run: Published, systems: Sequence[str], metrics: Sequence[str]) -> dict[tuple[str, str], Counts]:
    """Per system and metric the histogram of its values by query."""
    found = {(system, metric): np.zeros(STEPS + 2, np.int64) for system in systems for metric in metrics}
    for batch in run.batches("query_metrics", ["system", *metrics]):
        place = pc.index_in(batch["system"], value_set=pa.array(systems, pa.string())).to_numpy(zero_copy_only=False)
        for metric in (name for name in metrics if name in batch.schema.names):
            values = batch[metric].to_numpy(zero_copy_only=False)
            for number, system in enumerate(systems):
                found[system, metric] += histogram(values[place == number])
    return found


@dataclass
class Deltas:
    """Paired differences of one metric: their sums, and how they spread in buckets of 0.1 from −1 to 1."""

    queries: int = 0
    before: float = 0.0
    after: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    wins: int = 0
    losses: int = 0
    counts: Counts = field(default_factory=lambda: np.zeros(2 * STEPS, np.int64))

    @property
    def ties(self) -> int:
        return self.queries - self.wins - self.losses

    def add(self, before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]) -> None:
        """Take in the values of some queries; those where either is undefined are left out."""
        defined = ~(np.isnan(before) | np.isnan(after))
        before, after = before[defined], after[defined]
        delta = after - before
        self.queries += len(delta)
        self.before += float(before.sum())
        self.after += float(after.sum())
        self.total += float(delta.sum())
        self.squares += float((delta * delta).sum())
        moved = delta[np.abs(delta) > TIE]
        self.wins += int((moved > 0).sum())
        self.losses += int((moved < 0).sum())
        # A difference of exactly 0.1 belongs to the smaller bucket, on both sides of 0.
        size = np.clip(np.ceil(np.abs(moved) * STEPS - TIE), 1, STEPS).astype(np.int64)
        self.counts += np.bincount(np.where(moved > 0, STEPS - 1 + size, STEPS - size), minlength=2 * STEPS)

    def interval(self, confidence: float) -> tuple[float, float, float] | None:
        """The mean difference with its paired t interval; None below two queries."""
        if self.queries < 2:
            return None
        from scipy import stats

        mean = self.total / self.queries
        variance = max(0.0, (self.squares - self.queries * mean * mean) / (self.queries - 1))
        half = float(stats.t.ppf((1 + confidence) / 2, self.queries - 1)) * (variance / self.queries) ** 0.5
        return mean, mean - half, mean + half


Side = tuple[Published, str]  # a run and one of its systems


def paired(before: Side, after: Side, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Queries that both sides have, some at a time: `query_id`, and each column with `_x` and `_y` after its name.

    Every query comes exactly once, however the tables were laid out.
    """
    rows = before[0].count("query_metrics") + after[0].count("query_metrics")
    parts = max(1, -(-rows // ROWS_AT_ONCE))
    if parts == 1:
        yield _matched(*[_whole([*_frames(side, columns)], columns) for side in (before, after)])
        return
    with tempfile.TemporaryDirectory(prefix="assay-pairs-") as folder:
        for side, name in ((before, "x"), (after, "y")):
            _lay_out(_frames(side, columns), Path(folder), name, parts)
        for part in range(parts):
            yield _matched(*[_whole(_laid_out(Path(folder), name, part), columns) for name in ("x", "y")])


def _matched(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    return before.merge(after, on="query_id", how="inner", validate="one_to_one")


def _whole(frames: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    if frames:
        return pd.concat(frames, ignore_index=True)
    kinds = {"query_id": object} | dict.fromkeys(columns, float)
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds.items()})


def _frames(side: Side, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """The rows of one system, some at a time."""
    run, system = side
    for batch in run.batches("query_metrics", ["query_id", *columns], pc.field("system") == system):
        if batch.num_rows:
            yield batch.to_pandas()


def _lay_out(frames: Iterator[pd.DataFrame], folder: Path, name: str, parts: int) -> None:
    """Write rows to one file per part, chosen by the hash of the query."""
    writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
    schema: pa.Schema | None = None
    for frame in frames:
        part = pd.util.hash_array(frame["query_id"].to_numpy(object), categorize=False) % parts
        for number in np.unique(part):
            table = pa.Table.from_pandas(frame[part == number], preserve_index=False)
            schema = schema or table.schema
            if number not in writers:
                writers[number] = pa.ipc.new_stream(str(folder / f"{name}{number}"), schema)
            writers[number].write_table(table.cast(schema))
    for writer in writers.values():
        writer.close()


def _laid_out(folder: Path, name: str, part: int) -> list[pd.DataFrame]:
    place = folder / f"{name}{part}"
    if not place.exists():
        return []
    with pa.ipc.open_stream(str(place)) as stream:
        return [stream.read_all().to_pandas()]
