"""Published tables of one run, read batch by batch: what is held never grows with the data."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from pipelines.runs import Manifest
from pipelines.storage import Storage

Row = dict[str, Any]
BATCH = 65_536  # rows


class Published:
    """The tables of one run."""

    def __init__(self, storage: Storage, manifest: Manifest) -> None:
        self.storage = storage
        self.manifest = manifest

    def has(self, name: str) -> bool:
        return name in self.manifest.tables

    def count(self, name: str) -> int:
        """Rows of a table; 0 where the run has none."""
        return self.manifest.tables[name].rows if self.has(name) else 0

    def batches(self, name: str, columns: Sequence[str] | None = None, where: Any = None) -> Iterator[pa.RecordBatch]:
        """A table's rows, a bounded number at a time; nothing where the run has no such table."""
        if not self.count(name):
            return
        data = self.storage.dataset(self.manifest.tables[name].path)
        known = [column for column in columns if column in data.schema.names] if columns is not None else None
        scanner = ds.Scanner.from_dataset(
            data, columns=known, filter=where, batch_size=BATCH, batch_readahead=2, fragment_readahead=1
        )
        yield from scanner.to_batches()

    def rows(self, name: str, *, most: int, first: Callable[[Row], Any], where: Any = None) -> list[Row]:
        """The `most` rows that come first by a key; no more than these are ever held."""
        each = (row for batch in self.batches(name, where=where) for row in batch.to_pylist())
        return heapq.nsmallest(most, each, key=first)
