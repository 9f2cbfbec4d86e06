"""Read Parquet files inside Spark workers: Arrow reads their columns as they are, and Spark passes no rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

REPEATED = ("query_id", "system")  # ids that repeat are read as dictionaries
_BATCH_ROWS = 1 << 15
_TYPES = {"int": pa.int32(), "double": pa.float64(), "string": pa.string()}


@dataclass(frozen=True)
class FilePart:
    """Row groups of a Parquet file; `columns` has the names in the file of the columns of a contract."""

    table: str  # the name of the contract
    file: str
    groups: tuple[int, ...]
    columns: Mapping[str, str]
    types: Mapping[str, str]  # of the columns in the contract


def read_file_part(part: FilePart) -> Iterator[pa.RecordBatch]:
    """The rows of the part under the names of the contract: texts, ids that repeat as dictionaries, and numbers."""
    repeated = [part.columns[name] for name in REPEATED if name in part.columns]
    with pq.ParquetFile(part.file, read_dictionary=repeated) as file:
        for batch in file.iter_batches(
            _BATCH_ROWS, row_groups=list(part.groups), columns=list(part.columns.values()), use_threads=False
        ):
            columns = {name: _write_text(batch.column(there), name, part) for name, there in part.columns.items()}
            yield pa.RecordBatch.from_pydict(columns)


def _write_text(values: pa.Array, name: str, part: FilePart) -> pa.Array:
    """The column as it is, or whole numbers as text where the contract has text."""
    if part.types[name] != "string" or not pa.types.is_integer(values.type):
        return values
    texts = values.cast(pa.string())
    return texts.dictionary_encode() if name in REPEATED else texts


def cast_columns(rows: pa.Table, part: FilePart) -> pa.Table:
    """The rows with numbers and other texts in the types of the contract; dictionaries stay."""
    for name in part.columns:
        if name not in REPEATED:
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
