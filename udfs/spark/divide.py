"""Divide rankings, labels and queries by query, as bundles for `udfs.spark.score`.

The rows come from Parquet files that Arrow reads inside the worker: Spark would decode, check and convert each row by
itself. A document is sent as its hash, and a query as a number in the bundle's own dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from udfs.collect import DOC_TEXT
from udfs.spark.bundles import build_bundles, collect_rows, find_buckets
from udfs.tables import encode_ids, hash_ids, hash_texts

RANKINGS, LABELS, QUERIES = range(3)  # the kinds of bundles
_BATCH_ROWS = 1 << 16
_REPEATED = ("query_id", "system")  # ids that repeat are read as dictionaries
_TYPES = {"int": pa.int32(), "double": pa.float64(), "string": pa.string()}

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class FilePart:
    """Row groups of a Parquet file, which have rows of one kind; `columns` has their names in the file."""

    kind: int
    file: str
    groups: tuple[int, ...]
    columns: Mapping[str, str]
    types: Mapping[str, str]  # the type of each column in the contract


def divide_files(parts: Sequence[FilePart], systems: Sequence[str], partitions: int) -> Callable[[Batches], Batches]:
    """The function from numbers of parts to the bundles of their rows."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part = parts[number]
                for rows in collect_rows(_read_part(part)):
                    yield divide_by_query(_prepare_rows(rows, part, systems), part.kind, partitions)

    return run


def divide_by_query(rows: pa.Table, kind: int, partitions: int) -> pa.RecordBatch:
    """The rows as one bundle for each bucket that has some; those of a query share a bucket."""
    (query,), texts = encode_ids(rows["query_id"])
    bucket = find_buckets(hash_texts(texts), partitions)
    by_bucket = np.argsort(bucket, kind="stable")
    queries = np.bincount(bucket, minlength=partitions)
    first_query = np.cumsum(queries) - queries
    narrow = np.int16 if queries.max(initial=0) < 1 << 15 else np.int32
    code = np.empty(len(texts), dtype=narrow)  # of each query, in the dictionary of its bucket
    code[by_bucket] = np.arange(len(texts)) - np.repeat(first_query, queries)
    names = texts.take(pa.array(by_bucket)).cast(pa.string())

    row_bucket = bucket[query]
    order = np.argsort(row_bucket, kind="stable")
    sizes = np.bincount(row_bucket, minlength=partitions)
    starts = np.cumsum(sizes) - sizes
    codes = pa.array(code[query[order]])
    others = rows.drop_columns(["query_id"]).take(pa.array(order)).combine_chunks()
    filled = np.flatnonzero(sizes)
    bundles = []
    for at in filled:
        own = pa.DictionaryArray.from_arrays(
            codes.slice(starts[at], sizes[at]), names.slice(first_query[at], queries[at])
        )
        bundles.append(others.slice(starts[at], sizes[at]).append_column("query_id", own))
    return build_bundles(filled, bundles, partitions, kind)


def narrow_numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers in the smallest type that has exactly the same ones, to the sign of a zero."""
    kinds = [pa.int8(), pa.int16()] if pa.types.is_integer(values.type) else [pa.int8(), pa.int16(), pa.float32()]
    if values.null_count:
        return values
    exact = values.combine_chunks().to_numpy()
    bits = f"i{exact.itemsize}"
    for kind in kinds:
        with np.errstate(invalid="ignore", over="ignore"):
            narrow = exact.astype(kind.to_pandas_dtype())
        if np.array_equal(narrow.astype(exact.dtype).view(bits), exact.view(bits)):
            return pa.chunked_array([pa.array(narrow)])
    return values


def _read_part(part: FilePart) -> Iterator[pa.RecordBatch]:
    """The rows of the part, with the names of the contract."""
    repeated = [part.columns[name] for name in _REPEATED if name in part.columns]
    names = list(part.columns)
    with pq.ParquetFile(part.file, read_dictionary=repeated) as file:
        for batch in file.iter_batches(
            _BATCH_ROWS, row_groups=list(part.groups), columns=list(part.columns.values()), use_threads=False
        ):
            yield pa.RecordBatch.from_arrays([batch.column(part.columns[name]) for name in names], names=names)


def _prepare_rows(rows: pa.Table, part: FilePart, systems: Sequence[str]) -> pa.Table:
    """The rows in the types of the contract, with what scoring needs of them."""
    for name in part.columns:
        if name not in _REPEATED:
            values = rows[name].cast(_TYPES[part.types[name]])
            narrow = values if part.types[name] == "string" else narrow_numbers(values)
            rows = rows.set_column(rows.schema.get_field_index(name), name, narrow)
    if part.kind == RANKINGS:
        rows = rows.append_column(DOC_TEXT, rows["doc_id"])
        (system,), names = encode_ids(rows["system"])
        index = pc.index_in(names, pa.array(systems, names.type)).to_numpy(zero_copy_only=False)
        numbers = narrow_numbers(pa.chunked_array([pa.array(index[system], pa.int64())]))
        rows = rows.set_column(rows.schema.get_field_index("system"), "system", numbers)
    if part.kind != QUERIES:
        (doc,) = hash_ids(rows["doc_id"])
        rows = rows.set_column(rows.schema.get_field_index("doc_id"), "doc_id", pa.array(doc))
    return rows
