"""Keep the places of days in a compact form: hashes that repeat as small numbers, and queries once per bundle.

A window reads the places of all of its days to find few of them, so their size is the time that this takes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipelines.labels.denoise.columns import join_chunks, read_integers
from udfs.ragged import Ints, Ragged
from udfs.spark.files import narrow_numbers

_REPEATED = ("document", "pair")  # lists of hashes
_LISTS = (*_REPEATED, "position")


def merge_runs(runs: pa.Table) -> pa.Table:
    """The same impressions, with those of a page together: in a log that is in no order, each is a run of its own."""
    order = np.argsort(read_integers(runs["page"]), kind="stable")
    keys = [_number(join_chunks(runs[name]))[order] for name in runs.schema.names if name not in _LISTS]
    starts = Ragged.of_sorted(*keys).offsets[:-1]
    if len(starts) == len(order):
        return runs
    sorted_runs = runs.take(pa.array(order))
    merged = sorted_runs.take(pa.array(starts))
    rows = np.append(0, np.cumsum(join_chunks(sorted_runs[_LISTS[0]]).value_lengths().to_numpy()))
    borders = pa.array(np.append(rows[starts], rows[-1]).astype(np.int32))
    for name in _LISTS:
        flat = join_chunks(sorted_runs[name]).flatten()
        merged = merged.set_column(merged.schema.get_field_index(name), name, pa.ListArray.from_arrays(borders, flat))
    return merged


def _number(values: pa.Array) -> Ints:
    """The values, or for texts the numbers of a dictionary."""
    if pa.types.is_string(values.type):
        values = values.dictionary_encode()
    if pa.types.is_dictionary(values.type):
        return read_integers(values.indices, null=-1)
    return read_integers(values.cast(pa.int64()))


def compact_places(runs: pa.Table) -> pa.Table:
    """The same runs, with dictionaries for their documents, pairs and queries, and narrow positions."""
    columns = {}
    for name in runs.schema.names:
        values = join_chunks(runs[name])
        if name in _LISTS:
            flat = values.flatten()
            values = _build_lists(values, _encode(flat) if name in _REPEATED else _narrow(flat))
        columns[name] = _encode(values) if name == "query_id" else values
    return pa.table(columns)


def expand_places(runs: pa.Table) -> pa.Table:
    """The runs as they were, but for the width of their positions."""
    columns = {}
    for name in runs.schema.names:
        values = join_chunks(runs[name])
        if name in _REPEATED:
            values = _build_lists(values, values.flatten().dictionary_decode())
        columns[name] = values.dictionary_decode() if name == "query_id" else values
    return pa.table(columns)


def _build_lists(lists: pa.ListArray, flat: pa.Array) -> pa.ListArray:
    """Lists of the same lengths, of other values."""
    lengths = lists.value_lengths().to_numpy()
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32)), flat)


def _encode(values: pa.Array) -> pa.DictionaryArray:
    encoded = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(_narrow(encoded.indices), encoded.dictionary)


def _narrow(numbers: pa.Array) -> pa.Array:
    return join_chunks(narrow_numbers(pa.chunked_array([numbers])))
