"""Read Parquet files inside Spark workers: Arrow reads their columns as they are, and Spark passes no rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_BATCH_ROWS = 1 << 15
_MICROS = "us"
_TYPES = {
    "int": pa.int32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp(_MICROS),
}


@dataclass(frozen=True)
class FilePart:
    """Row groups of a Parquet file; `columns` has the names in the file of the columns of a contract."""

    table: str  # the name of the contract
    file: str
    groups: tuple[int, ...]
    rows: int
    columns: Mapping[str, str]
    types: Mapping[str, str]  # of the columns in the contract
    repeated: frozenset[str]  # columns whose texts repeat, which are read as dictionaries


def read_file_part(part: FilePart, batch_rows: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of the part under the names of the contract: texts, those that repeat as dictionaries, and numbers."""
    repeated = [part.columns[name] for name in part.repeated]
    with open_file(part.file, repeated) as file:
        for batch in file.iter_batches(
            batch_rows, row_groups=list(part.groups), columns=list(part.columns.values()), use_threads=False
        ):
            columns = {name: _write_text(batch.column(there), name, part) for name, there in part.columns.items()}
            yield pa.RecordBatch.from_pydict(columns)


def open_file(path: str, repeated: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a Parquet file, with these columns as dictionaries.

    Times are microseconds: Spark writes INT96 by default, which Arrow would read as nanoseconds, and those end in 2262.
    """
    return pq.ParquetFile(path, read_dictionary=list(repeated), coerce_int96_timestamp_unit=_MICROS)


def _write_text(values: pa.Array, name: str, part: FilePart) -> pa.Array:
    """The column as it is, or where the contract has text, whole numbers as text and long texts as others."""
    if part.types[name] != "string":
        return values
    if pa.types.is_dictionary(values.type):
        texts = values.dictionary.cast(pa.string())
        return pa.DictionaryArray.from_arrays(values.indices.cast(pa.int32()), texts)
    texts = values.cast(pa.string())
    return texts.dictionary_encode() if name in part.repeated else texts


def cast_columns(rows: pa.Table, part: FilePart) -> pa.Table:
    """The rows with numbers and other texts in the types of the contract; dictionaries stay."""
    for name in part.columns:
        if name not in part.repeated:
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, name, rows[name].cast(_TYPES[part.types[name]]))
    return rows


def narrow_numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers in the smallest type that has exactly the same ones, to the sign of a zero."""
    if values.null_count:
        return values
    kinds = [pa.int8(), pa.int16()] if pa.types.is_integer(values.type) else [pa.int8(), pa.int16(), pa.float32()]
    exact = values.combine_chunks().to_numpy()
    bits = f"i{exact.itemsize}"
    for kind in kinds:
        with np.errstate(invalid="ignore", over="ignore"):
            narrow = exact.astype(kind.to_pandas_dtype())
        if np.array_equal(narrow.astype(exact.dtype).view(bits), exact.view(bits)):
            return pa.chunked_array([pa.array(narrow)])
    return values
