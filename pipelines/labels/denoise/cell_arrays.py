"""Kept impressions as lists, one row per bucket of pairs: packed for `cells` of `label_days`, and unpacked again.

Runs inside Spark workers. Millions of impressions are read, moved and counted as arrays; as rows of Spark, each would
cost as much as reading it from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.labels.denoise.pair_arrays import encode_texts, group_rows, read_numbers
from udfs.ragged import Bools, Ints
from udfs.tables import encode_ids

PLACE = ("key", "query_id", "doc_id", "context", "position", "history", "system", "day", "draw", "page_mark")
ROW = {"person": pa.int64(), "page": pa.int64(), "clicks": pa.int32(), "carts": pa.int32(), "purchases": pa.int32()}
KEPT, WITHDRAWN, ADDED = range(3)  # what the impressions of a bucket are


@dataclass(frozen=True)
class CellRows:
    """Single impressions: their places, one row each, and per impression the place and numbers."""

    places: pa.Table
    place: Ints
    numbers: dict[str, Ints]


def pack_rows(table: pa.Table, buckets: int) -> pa.Table:
    """One row per bucket: its distinct places, and of each impression the place and the numbers, as lists."""
    bucket = read_numbers(table["bucket"])
    place, example = _group_places(table)
    row_order = np.lexsort((place, bucket))
    place_order = np.argsort(bucket[example], kind="stable")
    names, row_starts = np.unique(bucket[row_order], return_index=True)
    place_starts = np.searchsorted(bucket[example][place_order], names)
    number = np.empty_like(place_order)
    number[place_order] = np.arange(len(place_order)) - np.repeat(
        place_starts, np.diff(np.append(place_starts, len(place_order)))
    )
    fields = table.select(PLACE).take(pa.array(example[place_order]))
    lists = {"places": _split_list(place_starts, fields.to_struct_array().combine_chunks())}
    lists["place"] = _split_list(row_starts, pa.array(number[place[row_order]].astype(np.int32)))
    for name, kind in ROW.items():
        lists[name] = _split_list(row_starts, pa.array(read_numbers(table[name])[row_order], kind))
    size = pa.array(np.full(len(names), buckets), pa.int32())
    return pa.table({"bucket": pa.array(names, pa.int32()), "buckets": size} | lists)


def unpack_rows(table: pa.Table) -> CellRows:
    """The impressions of packed rows, without those that are withdrawn, or whose pair is in another bucket."""
    place_lists = _Lists(table["places"])
    places = pa.Table.from_struct_array(place_lists.values)
    row_lists = _Lists(table["place"])
    place = row_lists.values.to_numpy().astype(np.int64) + place_lists.starts[row_lists.owner]
    numbers = {name: read_numbers(_Lists(table[name]).values) for name in ROW}
    mine = _in_bucket(places, *(read_numbers(table[name])[place_lists.owner] for name in ("bucket", "buckets")))
    change = read_numbers(table["change"])[row_lists.owner]
    counted = mine[place] & (change != WITHDRAWN)
    withdrawn = pd.unique(numbers["page"][change == WITHDRAWN])
    if len(withdrawn):
        counted &= (change == ADDED) | ~pd.Series(numbers["page"]).isin(withdrawn).to_numpy()
    return CellRows(places, place[counted], {name: values[counted] for name, values in numbers.items()})


class _Lists:
    """A column of lists: all values, per value the number of its list, and per list the number of its first value."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        joined = column.combine_chunks()
        lists = joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
        lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
        self.values = lists.flatten()
        self.owner: Ints = np.repeat(np.arange(len(lengths)), lengths)
        self.starts: Ints = np.cumsum(lengths) - lengths


def _in_bucket(places: pa.Table, bucket: Ints, buckets: Ints) -> Bools:
    """Whether a place belongs to the bucket that its row stands for: that of a day with fewer buckets has more."""
    return np.equal(read_numbers(places["key"]) % np.maximum(buckets, 1), bucket)


def _group_places(table: pa.Table) -> tuple[Ints, Ints]:
    """Per row the number of its place, and per place one of its rows."""
    texts = [encode_ids(table[name].fill_null(""))[0][0] for name in ("query_id", "doc_id", "context")]
    systems = encode_texts(table["system"])
    return group_rows([*texts, systems, *(read_numbers(table[name]) for name in PLACE[4:6] + PLACE[7:])])


def _split_list(starts: Sequence[int] | Ints, values: pa.Array | pa.ChunkedArray) -> pa.ListArray:
    flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return pa.ListArray.from_arrays(pa.array(np.append(starts, len(flat)), pa.int32()), flat)
