"""Move rows between Python workers as bundles: Arrow batches that pass through Spark as bytes.

A shuffle of Spark writes, copies and reads every row by itself, and a row that Python makes is converted twice more.
Where Python is at both ends of a shuffle, each task divides its rows into one bundle per partition of the next stage,
and Spark moves the bundles: a few thousand rows, whatever the size of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from udfs.ragged import Ints
from udfs.spark.references import resolve_reference

BUNDLES = "bucket int, kind int, data binary"
ROWS_AT_ONCE = 1 << 19  # of a task that makes bundles; it holds so many in memory
BYTES_AT_ONCE = 1 << 28  # likewise, for long texts
UNLABELLED = -(1 << 31)
_SEED = 42  # of Spark's hash
_DEEP = 64  # numbers to try per partition


def exchange(bundles: DataFrame, buckets: int, partitions: int | None = None) -> DataFrame:
    """Bring the bundles of each bucket together, into as many partitions as there are buckets or into fewer."""
    count = min(buckets, partitions or buckets)
    names = ",".join(map(str, name_buckets(count)))
    place = F.expr(f"cast(bucket * {count}L div {buckets} as int)")
    return bundles.repartition(count, F.split(F.lit(names), ",")[place].cast("int"))


def collect_rows(batches: Iterable[pa.RecordBatch], most: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """Tables of about `most` rows, fewer where they are long, from the batches of a task; no table for no rows."""
    waiting, rows, size = [], 0, 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows >= most or size >= BYTES_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def divide_rows(
    table: pa.Table, key: Ints, partitions: int, kind: int = 0, encode: Callable[[pa.Table], pa.Table] | None = None
) -> pa.RecordBatch:
    """The rows as one bundle for each bucket that has some; rows with equal keys, which are hashes, share a bucket.

    `encode` is applied to the rows of each bundle.
    """
    bucket = find_buckets(key, partitions)
    order = np.argsort(bucket, kind="stable")
    sizes = np.bincount(bucket, minlength=partitions)
    sorted_rows = table.take(pa.array(order)).combine_chunks()
    starts = np.cumsum(sizes) - sizes
    filled = np.flatnonzero(sizes)
    divided = [sorted_rows.slice(starts[at], sizes[at]) for at in filled]
    return build_bundles(filled, divided if encode is None else [encode(rows) for rows in divided], kind)


def build_bundles(bucket: Ints, tables: Sequence[pa.Table], kind: int = 0) -> pa.RecordBatch:
    """Each table as a bundle for its bucket."""
    sink, borders = pa.BufferOutputStream(), [0]
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        borders.append(sink.tell())
    offsets = pa.py_buffer(np.array(borders, dtype=np.int32))
    columns = [
        pa.array(bucket.astype(np.int32)),
        pa.array(np.full(len(tables), kind, dtype=np.int32)),
        pa.BinaryArray.from_buffers(pa.binary(), len(tables), [None, offsets, sink.getvalue()]),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "kind", "data"])


@dataclass(frozen=True)
class PackedBundles:
    """The bundles of a task by kind, which are read when their rows are needed.

    `label` is a column of numbers beside the bundles, which becomes one of their rows, `UNLABELLED` where it is null.
    """

    bundles: Mapping[int, Sequence[tuple[pa.BinaryScalar, int | None]]]
    label: str | None = None

    def read(self, kind: int, select: Callable[[pa.Table], pa.Table] | None = None) -> pa.Table | None:
        """The rows of a kind as one table, in no particular order; None where there is no bundle of it.

        `select` is applied to each bundle, before they are put together: choosing rows of one is faster than of all.
        A column whose type is narrower in some bundles than in others gets the widest.
        """
        if kind not in self.bundles:
            return None
        tables = []
        for data, number in self.bundles[kind]:
            table = read_bundle(data)
            if self.label is not None:
                values = np.full(table.num_rows, UNLABELLED if number is None else number, dtype=np.int64)
                table = table.append_column(self.label, pa.array(values))
            tables.append(table if select is None else select(table))
        return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()


def collect_bundles(batches: Iterable[pa.RecordBatch], label: str | None = None) -> PackedBundles:
    """The bundles of a task, or references to them, by kind."""
    bundles: dict[int, list[tuple[pa.BinaryScalar, int | None]]] = {}
    for batch in batches:
        labels = [None] * batch.num_rows if label is None else batch[label].to_pylist()
        for kind, data, number in zip(batch["kind"].to_pylist(), batch["data"], labels, strict=True):
            bundles.setdefault(kind, []).append((data, number))
    return PackedBundles(bundles, label)


def read_bundles(batches: Iterable[pa.RecordBatch], label: str | None = None) -> dict[int, pa.Table]:
    """The rows of all bundles by kind, see `PackedBundles`."""
    packed = collect_bundles(batches, label)
    return {kind: table for kind in packed.bundles if (table := packed.read(kind)) is not None}


def read_bundle(data: pa.BinaryScalar) -> pa.Table:
    """The rows of one bundle."""
    return pa.ipc.open_stream(resolve_reference(data)).read_all()


def unpack_rows(bundles: DataFrame, schema: str) -> DataFrame:
    """The rows of bundles of one kind as rows of Spark, with the columns of the schema."""
    names = [column.split()[0] for column in schema.split(", ")]

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for table in read_bundles([batch]).values():
                yield from table.select(names).to_batches()

    return bundles.mapInArrow(read, schema)


def find_buckets(key: Ints, partitions: int) -> npt.NDArray[np.uint16]:
    """The bucket of each hash, by its upper bits."""
    return (((key >> 32) & 0xFFFFFFFF) * partitions >> 32).astype(np.uint16)


@cache
def name_buckets(partitions: int) -> npt.NDArray[np.int32]:
    """Per bucket the smallest number that Spark puts into the partition of that number.

    Spark hashes numbers to choose a partition: with 0, 1, 2, … some partitions would get several buckets, and others
    none. Another hash would change only that.
    """
    names = np.zeros(partitions, dtype=np.int32)
    numbers = np.arange(partitions * _DEEP, dtype=np.int32)
    place = hash_numbers(numbers).astype(np.int64) % partitions
    names[place[::-1]] = numbers[::-1]
    return names


def hash_numbers(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """What `hash` of Spark returns for each number: Murmur3 of 32 bits."""
    with np.errstate(over="ignore"):
        mixed = numbers.view(np.uint32) * np.uint32(0xCC9E2D51)
        mixed = _rotate(mixed, 15) * np.uint32(0x1B873593)
        state = _rotate(np.uint32(_SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        state ^= np.uint32(4)
        state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (state ^ (state >> np.uint32(16))).view(np.int32)


def _rotate(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
