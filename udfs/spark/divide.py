"""Divide rankings, labels and queries by query, as bundles for `udfs.spark.score`.

The rows come from Parquet files that Arrow reads inside the worker: Spark would decode, check and convert each row by
itself. A document is sent as its hash, and a query as a number in the bundle's own dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.collect import DOC_TEXT
from udfs.spark.bundles import build_bundles, collect_rows, find_buckets
from udfs.spark.files import FilePart, cast_columns, narrow_numbers, read_file_part
from udfs.tables import encode_ids, hash_ids, hash_texts

RANKINGS, LABELS, QUERIES = range(3)  # the kinds of bundles
KINDS = {"rankings": RANKINGS, "judgments": LABELS, "queries": QUERIES}

Batches = Iterable[pa.RecordBatch]


def divide_files(parts: Sequence[FilePart], systems: Sequence[str], partitions: int) -> Callable[[Batches], Batches]:
    """The function from numbers of parts to the bundles of their rows."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part = parts[number]
                kind = KINDS[part.table]
                for rows in collect_rows(read_file_part(part)):
                    yield divide_by_query(_prepare_rows(rows, part, systems), kind, partitions)

    return run


def divide_by_query(rows: pa.Table, kind: int, partitions: int) -> pa.RecordBatch:
    """The rows as one bundle for each bucket that has some; those of a query share a bucket."""
    (query,), texts = encode_ids(rows["query_id"])
    bucket = find_buckets(hash_texts(texts), partitions)
    by_bucket = np.argsort(bucket, kind="stable")
    queries = np.bincount(bucket, minlength=partitions)
    first_query = np.cumsum(queries) - queries
    code = np.empty(len(texts), dtype=np.int32)  # of each query, in the dictionary of its bucket
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
    return build_bundles(filled, bundles, kind)


def _prepare_rows(rows: pa.Table, part: FilePart, systems: Sequence[str]) -> pa.Table:
    """The rows in the types of the contract, with what scoring needs of them."""
    kind, rows = KINDS[part.table], cast_columns(rows, part)
    for name, type_name in part.types.items():
        if type_name != "string":
            rows = rows.set_column(rows.schema.get_field_index(name), name, narrow_numbers(rows[name]))
    if kind == RANKINGS:
        rows = rows.append_column(DOC_TEXT, rows["doc_id"])
        (system,), names = encode_ids(rows["system"])
        index = pc.index_in(names, pa.array(systems, names.type)).to_numpy(zero_copy_only=False)
        numbers = narrow_numbers(pa.chunked_array([pa.array(index[system], pa.int64())]))
        rows = rows.set_column(rows.schema.get_field_index("system"), "system", numbers)
    if kind != QUERIES:
        (doc,) = hash_ids(rows["doc_id"])
        rows = rows.set_column(rows.schema.get_field_index("doc_id"), "doc_id", pa.array(doc))
    return rows
