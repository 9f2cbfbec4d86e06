"""Pair the queries of two sides from their published tables, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.warehouse.owner import open_temporary_folder
from pipelines.warehouse.tables import RunTables
from udfs.registry import MetricSpec
from udfs.statistics.counting import RETRIEVED, has_enough_judged, judged_column

ROWS_AT_ONCE = 2_000_000  # paired in memory; longer tables are first partitioned by the hash of their query

Side = tuple[RunTables, str]  # a run and one of its systems


@dataclass(frozen=True)
class QueryPairs:
    """Some queries of both sides; the columns of the sides end with `_x` and `_y`."""

    frame: pd.DataFrame
    judged: Mapping[str, str]  # column with the judged share, by the key of a metric that needs it to count
    min_judged: float

    def values(self, metric: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """A metric on both sides; NaN where it is undefined or too little of the list is judged to count."""
        return self._select(metric, "x"), self._select(metric, "y")

    def _select(self, metric: str, side: str) -> npt.NDArray[np.float64]:
        values = self._column(metric, side)
        if metric not in self.judged:
            return values
        share, retrieved = self._column(self.judged[metric], side), self._column(RETRIEVED, side)
        return np.where(has_enough_judged(share, retrieved, self.min_judged), values, np.nan)

    def _column(self, name: str, side: str) -> npt.NDArray[np.float64]:
        return self.frame[f"{name}_{side}"].to_numpy(np.float64)


def pair_queries(
    before: Side, after: Side, metrics: Sequence[str], *, judged: Mapping[str, str], min_judged: float
) -> Iterator[QueryPairs]:
    """The queries that both sides have, each exactly once, in batches."""
    columns = list(dict.fromkeys([*metrics, *(judged[metric] for metric in metrics if metric in judged), RETRIEVED]))
    for frame in _join(before, after, columns):
        yield QueryPairs(frame, judged, min_judged)


def find_judged_columns(run: RunTables, specs: Sequence[MetricSpec]) -> dict[str, str]:
    """The columns of `query_metrics` with the judged share, by the key of the metric they belong to."""
    table = run.storage.dataset(run.manifest.tables["query_metrics"].path)
    return {spec.key: column for spec in specs if (column := judged_column(spec, table.schema.names))}


def _join(before: Side, after: Side, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    rows = before[0].count("query_metrics") + after[0].count("query_metrics")
    parts = max(1, -(-rows // ROWS_AT_ONCE))
    if parts == 1:
        yield _merge(*[_concat([*_read_frames(side, columns)], columns) for side in (before, after)])
        return
    with open_temporary_folder() as folder:
        for side, name in ((before, "x"), (after, "y")):
            _write_parts(_read_frames(side, columns), folder, name, parts)
        for part in range(parts):
            yield _merge(*[_concat(_read_part(folder, name, part), columns) for name in ("x", "y")])


def _merge(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    return before.merge(after, on="query_id", how="inner", validate="one_to_one")


def _concat(frames: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    if frames:
        return pd.concat(frames, ignore_index=True)
    types = {"query_id": object} | dict.fromkeys(columns, float)
    return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types.items()})


def _read_frames(side: Side, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """The rows of one system, in batches."""
    run, system = side
    for batch in run.batches("query_metrics", ["query_id", *columns], pc.field("system") == system):
        if batch.num_rows:
            yield batch.to_pandas()


def _write_parts(frames: Iterator[pd.DataFrame], folder: Path, name: str, parts: int) -> None:
    """Partition rows by the hash of their query, one file per part."""
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


def _read_part(folder: Path, name: str, part: int) -> list[pd.DataFrame]:
    path = folder / f"{name}{part}"
    if not path.exists():
        return []
    with pa.ipc.open_stream(str(path)) as stream:
        return [stream.read_all().to_pandas()]
