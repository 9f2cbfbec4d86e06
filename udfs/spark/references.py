"""Refer to bundles in files: Spark moves their places, and the worker that needs a bundle reads it itself.

For files that every worker can open by their path. What one stage leaves for the next is a range of a file that the
worker wrote; Spark would copy, compress and decode the bytes several times. What is published is a row group of a
Parquet file; the statistics of the row group are the other columns of its one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import PublishError

ONE_BUNDLE_PER_GROUP = {"parquet.block.row.count.limit": "1"}  # an option of Spark for the files to refer to
FILES = "path string, kind int"
_MARK = b"row group\n"  # a stream of Arrow begins with 0xFF
_RANGE = b"file range\n"
_ALIGNMENT = 64  # bytes, as Arrow wants its buffers
_OPEN_FILES = 256

Batches = Iterable[pa.RecordBatch]


def store_bundles(function: Callable[[Batches], Batches], folder: str | None) -> Callable[[Batches], Batches]:
    """The same function, its bundles in a file of this folder, and references to them returned.

    The files are there for later stages until whoever named the folder removes it; None leaves the bundles as they are.
    """
    if folder is None:
        return function

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        path = f"{folder}/{uuid4().hex}"
        for batch in function(batches):
            try:
                places = _append_bundles(path, batch["data"])
            except OSError as error:
                raise PublishError(f"cannot write: {error}", where=folder) from error
            yield batch.set_column(batch.schema.get_field_index("data"), "data", pa.array(places, pa.binary()))

    return run


def _append_bundles(path: str, bundles: pa.BinaryArray) -> list[bytes]:
    """Write bundles to the end of a file; returns the references to them."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    references = []
    with Path(path).open("ab") as file:
        for bundle in bundles:
            buffer = bundle.as_buffer()
            file.write(bytes(-file.tell() % _ALIGNMENT))
            references.append(_RANGE + f"{file.tell()} {buffer.size}\n{path}".encode())
            file.write(buffer)
    return references


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
    if buffer[: len(_RANGE)].to_pybytes() == _RANGE:
        place, path = bytes(buffer)[len(_RANGE) :].decode().split("\n", 1)
        start, size = map(int, place.split())
        file = pa.memory_map(path)
        file.seek(start)
        return file.read_buffer(size)
    if buffer[: len(_MARK)].to_pybytes() != _MARK:
        return buffer
    group, path = bytes(buffer)[len(_MARK) :].decode().split("\n", 1)
    rows = _open_file(path).read_row_group(int(group), columns=["data"])
    return rows["data"].chunk(0)[0].as_buffer()


@lru_cache(maxsize=_OPEN_FILES)
def _open_file(path: str) -> pq.ParquetFile:
    """A file of a committed day, which never changes; each has bundles of several buckets.

    Not mapped into memory: to copy a bundle from a mapped file takes longer than to read it.
    """
    return pq.ParquetFile(path)
