"""Conform tables in memory to their contracts, without Spark: the rules and reasons of `schemas.conform`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.inputs.count import RowCount
from schemas.conform import map_names, require_columns
from schemas.errors import InputError
from schemas.table import MAX_TEXT, Column, Table
from udfs.ragged import Bools, Ints
from udfs.tables import TableReader

_INT = np.iinfo(np.int32)
_WORDS = {"true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "1": 1.0, "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0, "0": 0.0}
_KINDS = {"int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}


@dataclass(frozen=True)
class ConformedArrow:
    """The rows that fit a contract, with those of its columns that the data has, and the count of all rows."""

    rows: pa.Table
    count: RowCount


def conform_arrow(source: TableReader, table: Table, columns: Mapping[str, str] | None = None) -> ConformedArrow:
    """Cast a table to its contract; `columns` maps a contract's name to the name in the data.

    Rows that do not fit are left out and counted by the reason that a run on Spark would record in `quarantine`.
    """
    names = map_names(source.names, table, columns or {})
    raw = {name: source.column(there) for name, there in names.items()}
    raw = _unfold_array(raw, table)
    require_columns(source.names, table, raw)
    cast: dict[str, pa.ChunkedArray] = {}
    size = len(next(iter(raw.values())))
    reasons: list[str] = []
    reason = np.zeros(size, dtype=np.int16)  # per row, 1 + the index of its first reason; 0 where it fits

    def reject(mask: Bools, why: str) -> None:
        if mask.any():
            reasons.append(why)
            reason[mask & (reason == 0)] = len(reasons)

    for column in table.columns:
        if column.name in raw:
            cast[column.name] = _cast_column(raw[column.name], column)
            for mask, rule in _find_faults(raw[column.name], cast[column.name], column):
                reject(mask, column.reject_reason(rule))
    if table.one_of:
        reject(np.all([_is_null(cast[name]) for name in table.one_of if name in cast], axis=0), table.one_of_reason)
    rows = pa.table(cast)
    if reasons:
        rows = rows.filter(pa.array(reason == 0))
    counts = np.bincount(reason, minlength=len(reasons) + 1)[1:]
    rejected = {why: int(rows) for why, rows in zip(reasons, counts, strict=True) if rows}
    return ConformedArrow(rows, RowCount(size, rows.num_rows, dict(sorted(rejected.items()))))


def _unfold_array(raw: dict[str, pa.ChunkedArray], table: Table) -> dict[str, pa.ChunkedArray]:
    """An array of documents as one row each; the index in the array gives the rank."""
    array = next((name for name in table.unfold if name in raw and "doc_id" not in raw), None)
    if array is None:
        return {name: values for name, values in raw.items() if name not in table.unfold}
    lists = raw[array].combine_chunks()
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise InputError(f"{table.name}.{array} is {lists.type}, not an array", hint="give an array of doc_ids")
    lengths = np.where(_is_null(pa.chunked_array([lists])), 1, pc.fill_null(pc.list_value_length(lists), 0))
    owner = np.repeat(np.arange(len(lists)), lengths)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1])) if len(lists) else np.zeros(0, dtype=np.int64)
    place = np.arange(len(owner)) - np.repeat(starts, lengths)
    null = _is_null(pa.chunked_array([lists]))[owner]  # a null array keeps its row, to be rejected
    at = np.zeros(len(owner), dtype=np.int64)
    at[~null] = np.arange(int((~null).sum()))
    items = lists.flatten().take(pa.array(at, mask=null))
    exploded = {name: values.take(pa.array(owner)) for name, values in raw.items() if name not in table.unfold}
    if pa.types.is_struct(items.type):
        for field in items.type:
            name = {"id": "doc_id", "key": "doc_id"}.get(field.name, field.name)
            exploded[name] = pa.chunked_array([pc.struct_field(items, field.name)])
    else:
        exploded["doc_id"] = pa.chunked_array([items])
    exploded[table.unfold[array]] = pa.chunked_array([pa.array(place + 1)])
    names = {*table.names}
    return {name: values for name, values in exploded.items() if name in names}


def _cast_column(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """A column in the type of its contract; null where a value cannot be cast."""
    if column.type == "string":
        return _cast_text(values)
    if column.type == "array<string>":
        return _cast_texts(values)
    if column.type not in _KINDS:
        problem = f"{column.name} is a {column.type}, which tables in memory cannot hold"
        raise InputError(problem, hint="use `assay evaluate`")
    numbers = _cast_number(values, words=column.type == "boolean")
    if column.type == "double" or numbers is None:
        return pa.chunked_array([pa.nulls(len(values), pa.float64())]) if numbers is None else numbers
    if column.type == "boolean":
        return pc.not_equal(numbers, 0.0)
    if pa.types.is_integer(values.type):
        whole = values
        valid = pc.and_(pc.greater_equal(values, int(_INT.min)), pc.less_equal(values, int(_INT.max)))
    else:
        whole = numbers
        valid = pc.and_(
            pc.equal(numbers, pc.floor(numbers)), pc.less_equal(pc.abs(numbers), float(_INT.max))
        )  # "3.0" is what pandas writes for an integer in a column with gaps
    return pc.if_else(valid, whole, None).cast(_KINDS[column.type])


def _cast_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_floating(values.type):  # as Spark writes them: 1.0, not 1
        distinct = values.unique()
        texts = pa.array([None if value is None else str(value) for value in distinct.to_pylist()], pa.large_string())
        return pa.chunked_array([texts.take(pc.index_in(values, distinct).combine_chunks())])
    try:
        return values.cast(pa.large_string())
    except pa.ArrowException:
        return pa.chunked_array([pa.array(map(_write_text, values.to_pylist()), pa.large_string())])


def _cast_texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrays of text without nulls and blanks; a value that is no array is an array of one."""
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        owner, texts = np.repeat(np.arange(len(values)), _count_items(values)), _cast_text(pc.list_flatten(values))
    else:
        owner, texts = np.arange(len(values)), _cast_text(values)
    keep, null = ~_is_blank(texts), _is_null(values)
    borders = np.concatenate(([0], np.cumsum(np.bincount(owner[keep], minlength=len(values)))))
    flat = texts.filter(pa.array(keep)).combine_chunks()
    return pa.chunked_array([pa.LargeListArray.from_arrays(pa.array(borders), flat, mask=pa.array(null))])


def _count_items(lists: pa.ChunkedArray) -> Ints:
    """Per row, the length of its array; 0 where it is null."""
    lengths: Ints = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    return lengths


def _write_text(value: Any) -> str | None:
    """A value as text; bytes that are not UTF-8 become marks, as Spark reads them."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if value is None else str(value)


def _cast_number(values: pa.ChunkedArray, *, words: bool) -> pa.ChunkedArray | None:
    """A column as 64-bit floats, null where a text is no number; None where its type cannot be a number."""
    kind = values.type
    if not _is_text(kind):
        castable = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        if not (castable or pa.types.is_decimal(kind) or pa.types.is_null(kind)):
            return None
        return values.cast(pa.uint8() if pa.types.is_boolean(kind) else kind).cast(pa.float64(), safe=False)
    distinct = values.unique()
    read = _WORDS.get if words else _read_number
    numbers = [None if text is None else read(text.strip(" ").lower()) for text in distinct.to_pylist()]
    return pa.chunked_array([pa.array(numbers, pa.float64()).take(pc.index_in(values, distinct).combine_chunks())])


def _read_number(text: str) -> float | None:
    """The number that Spark reads from a text; None where it reads none."""
    if not re.fullmatch(r"[+-]?(nan|inf(inity)?|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)", text, re.ASCII):
        return None
    return float(text)


def _find_faults(raw: pa.ChunkedArray, cast: pa.ChunkedArray, column: Column) -> Iterator[tuple[Bools, str]]:
    """The rows that a rule of this column rejects, rule by rule."""
    missing = _is_null(cast)
    blank = _is_blank(raw)
    if not column.may_be_null:
        yield blank, "empty"
    if column.type == "string":
        yield _fill(pc.greater(pc.binary_length(cast), MAX_TEXT)), "length"
    elif column.type == "array<string>":
        owner = np.repeat(np.arange(len(cast)), _count_items(cast))
        long = _fill(pc.greater(pc.binary_length(pc.list_flatten(cast)), MAX_TEXT))
        yield np.bincount(owner[long], minlength=len(cast)) > 0, "length"
    else:
        yield ~blank & missing, "type"
    if column.type == "double":
        yield ~_fill(pc.is_finite(cast), missing=True), "finite"
    if column.minimum is not None:
        yield _fill(pc.less(cast, column.minimum)), "minimum"
    if column.maximum is not None:
        yield _fill(pc.greater(cast, column.maximum)), "maximum"
    if column.choices:
        yield ~missing & ~_fill(pc.is_in(cast, pa.array(column.choices, cast.type))), "choices"
    if column.pattern:
        yield ~_fill(pc.match_substring_regex(cast, f"^(?:{column.pattern})$"), missing=True), "pattern"


def _is_blank(values: pa.ChunkedArray) -> Bools:
    """Where a value is null or empty text; only text is trimmed."""
    null = _is_null(values)
    if not _is_text(values.type):
        return null
    parts = [_is_blank_text(chunk.cast(pa.large_string())) for chunk in values.chunks]
    blank: Bools = null | np.concatenate([*parts, np.zeros(0, dtype=np.bool_)])
    return blank


def _is_blank_text(texts: pa.LargeStringArray) -> Bools:
    """Where a text has nothing but spaces; only texts that begin with one are trimmed, since that is slow."""
    _, borders, data = texts.buffers()
    offsets = np.frombuffer(borders, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    blank: Bools = np.diff(offsets) == 0
    content = np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8)
    rows = np.flatnonzero(~blank)
    rows = rows[content[offsets[rows]] == ord(" ")]
    blank[rows] = pc.equal(pc.utf8_trim(texts.take(pa.array(rows)), " "), "").to_numpy(zero_copy_only=False)
    return blank


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_null(values: pa.ChunkedArray) -> Bools:
    if not values.null_count:
        return np.zeros(len(values), dtype=np.bool_)
    return _fill(values.is_null())


def _fill(mask: pa.ChunkedArray, *, missing: bool = False) -> Bools:
    """A mask as NumPy, with `missing` where it is null."""
    filled: Bools = pc.fill_null(mask, missing).to_numpy().astype(np.bool_)
    return filled
