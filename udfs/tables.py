"""Read the columns of pandas, Arrow or Polars tables, and return tables of the same kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import InputError, did_you_mean
from udfs.ragged import Floats, Ints

Words = npt.NDArray[np.uint64]

ROWS_AT_ONCE = 1 << 15  # keeps the input of the hash in the CPU cache


def _decode(values: pa.Array) -> pa.Array:
    """An array in an ordinary type: compute functions have no kernels for views, dictionaries and encoded runs."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _decode(values.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return _decode(pc.run_end_decode(values))
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return values.cast(pa.large_string())
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind) or pa.types.is_fixed_size_list(kind):
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        lengths = np.where(values.is_null().to_numpy(zero_copy_only=False), 0, lengths)
        borders = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int64())
        return pa.LargeListArray.from_arrays(borders, _decode(values.flatten()), mask=values.is_null())
    return values


def pack_bytes(rows: npt.NDArray[np.generic]) -> pa.FixedSizeBinaryArray:
    """The bytes of every row of an array, without a copy."""
    kind = pa.binary(rows[:1].nbytes)
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows))])


def slice_bytes(rows: pa.FixedSizeBinaryArray, start: int, most: int) -> pa.BinaryArray:
    """At most `most` rows as bytes of any length, which is the only kind that Spark reads, without a copy."""
    width, size = rows.type.byte_width, min(most, len(rows) - start)
    data = rows.buffers()[1].slice((rows.offset + start) * width, size * width)
    offsets = np.arange(size + 1, dtype=np.int32) * np.int32(width)
    return pa.BinaryArray.from_buffers(pa.binary(), size, [None, pa.py_buffer(offsets), data])


def join_bytes(values: pa.StringArray | pa.BinaryArray) -> pa.Buffer:
    """All texts or bytes concatenated, without a copy."""
    _, borders, data = values.buffers()
    offsets = np.frombuffer(borders, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    return data.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def unpack_records(column: pa.ChunkedArray, layout: np.dtype[np.void], name: str) -> npt.NDArray[np.void]:
    """Bytes of records, or numbers where a record is one, as an array of records; there are no nulls."""
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        parts = [chunk.to_numpy().view(np.uint8) for chunk in column.chunks]
    else:
        parts = [np.frombuffer(join_bytes(chunk), dtype=np.uint8) for chunk in column.chunks]
    size, records = sum(map(len, parts)), layout.itemsize * len(column)
    if size != records:
        raise InputError(f"{name} must have {layout.itemsize} bytes in every row")
    return np.concatenate([np.zeros(0, dtype=np.uint8), *parts]).view(layout)


class TableReader:
    """A table read column by column; only the columns that are used are converted."""

    def __init__(self, table: Any, name: str) -> None:
        self.name = name
        self._table = table
        self.kind = type(table).__module__.partition(".")[0]
        if self.kind == "pyarrow" and isinstance(table, pa.Table | pa.RecordBatch):
            self.names = list(table.schema.names)
        elif self.kind in ("pandas", "polars") and type(table).__name__ == "DataFrame":
            self.names = [str(column) for column in table.columns]
        else:
            raise InputError(
                f"{name} is a {type(table).__module__}.{type(table).__name__}",
                hint="give a pandas or Polars DataFrame or an Arrow table",
            )

    def has(self, column: str) -> bool:
        return column in self.names

    def column(self, column: str) -> pa.ChunkedArray:
        """A column as Arrow; dictionaries are decoded, and views and lists of a fixed size become ordinary columns."""
        if column not in self.names:
            raise InputError(f"{self.name} has no column {column!r}", hint=did_you_mean(column, self.names))
        if self.names.count(column) > 1:
            raise InputError(f"{self.name} has more than one column {column!r}", hint="drop or rename the others")
        try:
            values = self._arrow(column)
        except UnicodeEncodeError:
            problem = f"{self.name}.{column} holds text that is not Unicode (half of a surrogate pair)"
            raise InputError(problem, hint="fix the text where it was decoded") from None
        except (pa.ArrowException, OverflowError) as error:  # the second for integers beyond 64 bits
            hint = f"{str(error).splitlines()[0]}; values of several types are made one by .astype(str)"
            raise InputError(f"{self.name}.{column} cannot be read", hint=hint) from None
        chunks = [values] if isinstance(values, pa.Array) else values.chunks
        decoded = [_decode(chunk) for chunk in chunks]
        return pa.chunked_array(decoded, None if decoded else _decode(pa.array([], values.type)).type)

    def _arrow(self, column: str) -> pa.Array | pa.ChunkedArray:
        if self.kind == "pandas":
            return pa.array(self._table[column], from_pandas=True)
        return self._table.get_column(column).to_arrow() if self.kind == "polars" else self._table.column(column)

    def ids(self, column: str, *, encoded: bool = False) -> pa.ChunkedArray:
        """A column without nulls; where ids are `encoded`, a dictionary of text stays one."""
        values = self._arrow(column) if encoded and self._is_encoded(column) else self.column(column)
        if values.null_count:
            raise InputError(f"{self.name}.{column} is empty in {values.null_count} rows", hint="fill or drop them")
        return values

    def _is_encoded(self, column: str) -> bool:
        return self.kind == "pyarrow" and pa.types.is_dictionary(self._table.schema.field(column).type)

    def numbers(self, column: str) -> Floats:
        """A column as floats, NaN for null."""
        values = self.column(column)
        try:
            return np.asarray(values.cast(pa.float64()).to_numpy(), dtype=np.float64)
        except pa.ArrowException as error:
            problem = f"{self.name}.{column} does not hold numbers"
            raise InputError(problem, hint=str(error).splitlines()[0]) from None


def encode_ids(*columns: pa.ChunkedArray) -> tuple[list[Ints], pa.Array]:
    """The columns as codes of one dictionary, and that dictionary as strings, in order of first appearance."""
    if any(pa.types.is_dictionary(column.type) for column in columns):
        return _unify_codes(columns)
    joined = _concat(columns)
    if _in_runs(joined[:ROWS_AT_ONCE]):  # compare the ids of a run instead of hashing them
        runs = pc.run_end_encode(joined, run_end_type=pa.int64())
        distinct = pc.dictionary_encode(runs.values)
        codes = np.repeat(distinct.indices.to_numpy().astype(np.int64), np.diff(runs.run_ends.to_numpy(), prepend=0))
    else:
        distinct = pc.dictionary_encode(joined)
        codes = distinct.indices.to_numpy().astype(np.int64)
    return _split(codes, columns), distinct.dictionary.cast(pa.large_string())


def _unify_codes(columns: tuple[pa.ChunkedArray, ...]) -> tuple[list[Ints], pa.Array]:
    """The same where some columns are dictionaries of text, none of which has a text that no row has."""
    encoded = pa.dictionary(pa.int32(), pa.string())
    chunks = [
        chunk if pa.types.is_dictionary(column.type) else chunk.dictionary_encode()
        for column in columns
        for chunk in column.chunks
    ]
    unified = pa.chunked_array([chunk.cast(encoded) for chunk in chunks], encoded).unify_dictionaries().chunks
    dictionary = unified[0].dictionary if unified else pa.array([], pa.string())
    codes = np.concatenate([np.zeros(0, dtype=np.int64), *[chunk.indices.to_numpy() for chunk in unified]])
    return _split(codes, columns), dictionary.cast(pa.large_string())


def _in_runs(ids: pa.Array) -> bool:
    """Whether equal ids mostly follow each other, as those of queries do in unshuffled tables."""
    return 2 * len(pc.run_end_encode(ids).values) < len(ids)


def hash_ids(*columns: pa.ChunkedArray) -> list[Ints]:
    """The columns as numbers that are equal where the ids are: integers as they are, text as a 64-bit hash.

    Two different texts collide once in 2^64 pairs; an exact dictionary of all documents would cost more than
    everything else together.
    """
    joined = _concat(columns)
    return _split(joined.to_numpy() if pa.types.is_integer(joined.type) else hash_texts(joined), columns)


def hash_texts(texts: pa.LargeStringArray) -> Ints:
    """Per text, a 64-bit hash of its length and its bytes, eight at a time."""
    _, borders, data = texts.buffers()
    offsets = np.frombuffer(borders, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8)
    content = np.concatenate((content, np.zeros(8, dtype=np.uint8)))
    words = np.ndarray((len(content) - 7,), np.dtype("<u8"), content, 0, (1,))  # the 8-byte word at every byte
    parts = [_hash_words(words, offsets[at : at + ROWS_AT_ONCE + 1]) for at in range(0, len(texts), ROWS_AT_ONCE)]
    return np.concatenate([*parts, np.zeros(0, dtype=np.uint64)]).view(np.int64)


def _hash_words(words: Words, offsets: Ints) -> Words:
    start, left = offsets[:-1], np.diff(offsets)
    mixed = left.astype(np.uint64) * _ODD
    rows = np.arange(len(left))
    while len(rows):
        step = (mixed[rows] ^ (words[start] & _FIRST[np.minimum(left, 8)])) * _ODD
        mixed[rows] = step ^ (step >> np.uint64(29))
        more = left > 8
        rows, start, left = rows[more], start[more] + 8, left[more] - 8
    return mixed * _ODD ^ mixed >> np.uint64(32)


_ODD = np.uint64(0xD6E8FEB86659FD93)
_FIRST = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)  # the first bytes of a word


def _concat(columns: tuple[pa.ChunkedArray, ...]) -> pa.Array:
    """The columns concatenated, as integers if all are, and as text otherwise."""
    common = pa.int64() if all(pa.types.is_integer(column.type) for column in columns) else pa.large_string()
    chunks = [chunk for column in columns for chunk in column.cast(common).chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], common)


def _split(values: Ints, columns: tuple[pa.ChunkedArray, ...]) -> list[Ints]:
    return np.split(values, np.cumsum([len(column) for column in columns])[:-1])


def order_by_code_point(ids: pa.ChunkedArray) -> Ints:
    """Per id, its position in the order of code points, which is that of the UTF-8 bytes by which Arrow sorts text."""
    texts = _concat((ids.cast(pa.large_string()),))
    place = np.empty(len(texts), dtype=np.int64)
    place[pc.array_sort_indices(texts).to_numpy()] = np.arange(len(texts))
    return place


def convert_like(source: TableReader, columns: dict[str, pa.Array]) -> Any:
    """The columns as a table of the same kind as `source`."""
    return convert_kind(pa.table(columns), source.kind)


def convert_kind(table: pa.Table, kind: str) -> Any:
    """An Arrow table as one of `kind`: pandas, polars or pyarrow."""
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    return table
