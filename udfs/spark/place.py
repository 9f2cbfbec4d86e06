"""Place documents inside a Spark worker: a function for `DataFrame.mapInArrow`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from udfs.collect import order_table
from udfs.conventions import Conventions
from udfs.lists import find_duplicates
from udfs.ragged import Ints, Ragged
from udfs.tables import TableReader, encode_ids, hash_ids

Batches = Iterable[pa.RecordBatch]


def place_rows(conventions: Conventions) -> Callable[[Batches], Batches]:
    """The function from rows of rankings, all those of a query in one partition, to documents at their scored ranks."""

    def run(batches: Batches) -> Batches:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            yield from place_table(pa.Table.from_batches(filled), conventions).to_batches()

    return run


def place_table(rankings: pa.Table, conventions: Conventions) -> pa.Table:
    """The documents of each list in order, without duplicates, with ranks from 1 without gaps: as they are scored."""
    reader = TableReader(rankings, "rankings")
    (query,), _ = encode_ids(reader.ids("query_id"))
    (system,), systems = encode_ids(reader.ids("system"))
    rows, rank = find_places(reader, query * len(systems) + system, conventions)
    placed = rankings.select(["system", "query_id", "doc_id"]).take(pa.array(rows))
    return placed.append_column("rank", pa.array(rank, pa.int32()))


def find_places(rankings: TableReader, key: Ints, conventions: Conventions) -> tuple[Ints, Ints]:
    """The rows that are scored, list by list in order, and their ranks; `key` says which rows are a list."""
    (doc,) = hash_ids(rankings.ids("doc_id"))
    owner = np.unique(key, return_inverse=True)[1]
    lists = Ragged.of_lengths(np.bincount(owner))
    order, _ = order_table(rankings, owner, lists, conventions)
    rows = np.arange(lists.rows) if order is None else order
    unique = ~find_duplicates(lists, doc[rows])
    if conventions.depth is not None:
        unique[unique] = lists.keep(unique).place <= conventions.depth
    return rows[unique], lists.keep(unique).place
