"""Refer to bundles in Parquet files: Spark moves their names, and the worker that needs a bundle reads it itself.

For files that every worker can open by their path. Each bundle is a row group of its own, so that it is read without
those beside it; the statistics of a row group are the other columns of its one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

ONE_BUNDLE_PER_GROUP = {"parquet.block.row.count.limit": "1"}  # an option of Spark for the files to refer to
FILES = "path string, kind int"
_MARK = b"row group\n"  # a stream of Arrow begins with 0xFF
_OPEN_FILES = 256


def list_references(columns: Sequence[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function from rows of `FILES` to references to all their bundles: `data`, and columns of integers."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, kind in zip(batch["path"].to_pylist(), batch["kind"].to_pylist(), strict=True):
                yield _list_file(path, kind, columns)

    return run


def _list_file(path: str, kind: int, columns: Sequence[str]) -> pa.RecordBatch:
    footer = pq.read_metadata(path)
    groups = range(footer.num_row_groups)
    places = {name: place for place, name in enumerate(footer.schema.names)}
    arrays = {
        "kind": pa.array([kind] * len(groups), pa.int32()),
        "data": pa.array([_MARK + f"{group}\n{path}".encode() for group in groups], pa.binary()),
    }
    for name in columns:
        if name not in arrays:
            values = [footer.row_group(group).column(places[name]).statistics.min for group in groups]
            arrays[name] = pa.array(values, pa.int32())
    return pa.RecordBatch.from_pydict({name: arrays[name] for name in columns})


def resolve_reference(data: pa.BinaryScalar) -> pa.Buffer:
    """The bytes of a bundle: those in the file, if the data refers to one."""
    buffer = data.as_buffer()
    if buffer[: len(_MARK)].to_pybytes() != _MARK:
        return buffer
    group, path = bytes(buffer)[len(_MARK) :].decode().split("\n", 1)
    rows = _open_file(path).read_row_group(int(group), columns=["data"])
    return rows["data"].chunk(0)[0].as_buffer()


@lru_cache(maxsize=_OPEN_FILES)
def _open_file(path: str) -> pq.ParquetFile:
    """A file of a committed day, which never changes; each has bundles of several buckets."""
    return pq.ParquetFile(path, memory_map=True)
