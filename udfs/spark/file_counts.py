"""Count the rows of Parquet files inside Spark workers, where all of them fit their contract beyond doubt.

A row that may not fit ends the count: Spark then counts the table, and says what is wrong with each row. Doubtful are
also rows whose values only Spark knows how to treat, such as texts that begin with a space.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.table import MAX_TEXT, Column, Table
from udfs.ragged import Bools, Ints
from udfs.sorting import sort_distinct
from udfs.spark.bundles import ROWS_AT_ONCE, collect_rows
from udfs.spark.files import FilePart, cast_columns, read_file_part
from udfs.xxhash import hash_like_spark

COUNTED = "counted binary"
DOCUMENT = "document"  # of a sampled row, the hash of its document
GRADES = range(-1, 11)  # grades are counted by whole numbers; the first and last include all beyond them
BUCKETS = 1 << 20  # of the hashes of ids that samples are drawn by
DAY = 86_400_000_000  # microseconds
SKETCHED = 4096  # smallest hashes of a column that its distinct values are estimated from
_INT = np.iinfo(np.int32)
# Spark converts older times from calendars and time zones of the past.
_TIMES = (np.datetime64("1990-01-01", "us").astype(int), np.datetime64("2200-01-01", "us").astype(int))

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class UnitSample:
    """Whole queries, pages or events to collect: those whose id has a hash, modulo `BUCKETS`, below a limit."""

    unit: str  # the column with the id
    columns: tuple[str, ...]
    below: int
    limit: int  # rows
    ids: tuple[str, ...]  # columns of ids
    doubtful: str  # a pattern of ids that are left to Spark
    longest: int  # bytes of a text; longer ones are left to Spark


@dataclass(frozen=True)
class FileRequest:
    """What to find out in the pass over the rows, beyond their counts."""

    samples: tuple[UnitSample, ...] = ()  # one for each unit
    distinct: tuple[str, ...] = ()  # columns whose distinct values are estimated


@dataclass(frozen=True)
class FileCount:
    """Counts of rows that all fit their contract."""

    rows: int = 0
    nulls: Mapping[str, int] = field(default_factory=dict)  # by column
    text_bytes: int = 0
    systems: frozenset[str] = frozenset()
    max_grade: float | None = None
    grades: Mapping[int, int] = field(default_factory=dict)  # rows by whole grade
    choices: Mapping[tuple[str, str], int] = field(default_factory=dict)  # rows by column and value
    days: Mapping[int, int] = field(default_factory=dict)  # rows by day since 1970
    smallest: Mapping[str, float] = field(default_factory=dict)  # of columns of numbers; times in microseconds
    largest: Mapping[str, float] = field(default_factory=dict)
    sketches: Mapping[str, Ints] = field(default_factory=dict)  # by column, see `sketch_hashes`
    samples: Mapping[str, pa.Table] = field(default_factory=dict)  # by unit


class DoubtfulRowsError(Exception):
    """Some rows may not fit their contract."""


def count_parts(
    tasks: Sequence[Sequence[FilePart]], contracts: Mapping[str, Table], requests: Mapping[str, FileRequest]
) -> Callable[[Batches], Batches]:
    """The function from numbers of tasks to the counts of their parts, pickled; None for a part with doubtful rows."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            parts = [part for number in batch.column(0).to_pylist() for part in tasks[number]]
            counted = [(part.table, count_part(part, contracts[part.table], requests[part.table])) for part in parts]
            yield pa.RecordBatch.from_pydict({"counted": pa.array(map(pickle.dumps, counted), pa.binary())})

    return run


def count_part(part: FilePart, contract: Table, request: FileRequest) -> FileCount | None:
    """The counts of a part; None where rows are doubtful."""
    try:
        tables = collect_rows(read_file_part(part, ROWS_AT_ONCE))
        return merge_counts([_count_rows(rows, part, contract, request) for rows in tables])
    except (DoubtfulRowsError, pa.ArrowException):
        return None


def merge_counts(counts: Sequence[FileCount]) -> FileCount:
    """The counts of all these rows."""

    def add(name: str) -> Counter[Any]:
        total: Counter[Any] = Counter()
        for count in counts:
            total.update(getattr(count, name))
        return total

    def find_ends(name: str, end: Callable[..., float]) -> dict[str, float]:
        columns = {column for count in counts for column in getattr(count, name)}
        return {c: end(getattr(count, name)[c] for count in counts if c in getattr(count, name)) for c in columns}

    units = {unit for count in counts for unit in count.samples}
    return FileCount(
        rows=sum(count.rows for count in counts),
        nulls=add("nulls"),
        text_bytes=sum(count.text_bytes for count in counts),
        systems=frozenset().union(*[count.systems for count in counts]),
        max_grade=max((count.max_grade for count in counts if count.max_grade is not None), default=None),
        grades=add("grades"),
        choices=add("choices"),
        days=add("days"),
        smallest=find_ends("smallest", min),
        largest=find_ends("largest", max),
        sketches=merge_sketches([count.sketches for count in counts]),
        samples={
            unit: pa.concat_tables([count.samples[unit] for count in counts if unit in count.samples]) for unit in units
        },
    )


def _count_rows(raw: pa.Table, part: FilePart, contract: Table, request: FileRequest) -> FileCount:
    ends = {name: _require_fit(raw[name], contract[name]) for name in part.columns}
    _require_one_of(raw, contract)
    rows = cast_columns(raw, part)
    texts = [name for name in part.columns if contract[name].type == "string"]
    max_grade, grades, days = None, dict[int, int](), dict[int, int]()
    if "grade" in part.columns:
        grade = rows["grade"].drop_null().to_numpy()
        max_grade = float(grade.max()) if len(grade) else None
        whole = np.clip(np.floor(grade), GRADES[0], GRADES[-1]).astype(np.int64) - GRADES[0]
        grades = dict(zip(GRADES, np.bincount(whole, minlength=len(GRADES)).tolist(), strict=True))
    if "ts" in part.columns:
        day, count = np.unique(rows["ts"].cast(pa.int64()).to_numpy() // DAY, return_counts=True)
        days = dict(zip(day.tolist(), count.tolist(), strict=True))
    return FileCount(
        rows=len(rows),
        nulls={name: rows[name].null_count for name in part.columns},
        text_bytes=sum(_sum_lengths(rows[name]) for name in texts),
        systems=frozenset(rows["system"].unique().drop_null().to_pylist()) if "system" in part.columns else frozenset(),
        max_grade=max_grade,
        grades=grades,
        choices=_count_choices(rows, [name for name in part.columns if contract[name].choices]),
        days=days,
        smallest={name: end[0] for name, end in ends.items() if end is not None},
        largest={name: end[1] for name, end in ends.items() if end is not None},
        sketches={name: sketch_hashes(_hash_texts(rows[name])) for name in request.distinct},
        samples={
            sample.unit: _select_sample(rows, sample) for sample in request.samples if sample.unit in part.columns
        },
    )


def _count_choices(rows: pa.Table, names: Sequence[str]) -> dict[tuple[str, str], int]:
    counted = [(name, item) for name in names for item in rows[name].value_counts().to_pylist()]
    return {(name, item["values"]): item["counts"] for name, item in counted}


def sketch_hashes(hashes: Sequence[Ints]) -> Ints:
    """The smallest distinct hashes, as unsigned numbers: what the number of distinct values is estimated from."""
    joined = np.concatenate([np.zeros(0, dtype=np.int64), *hashes]).view(np.uint64)
    return sort_distinct(joined)[:SKETCHED].view(np.int64)


def merge_sketches(sketches: Sequence[Mapping[str, Ints]]) -> dict[str, Ints]:
    """The sketches of all rows, by column, from those of parts of them."""
    columns = {column for sketch in sketches for column in sketch}
    return {column: sketch_hashes([sketch[column] for sketch in sketches if column in sketch]) for column in columns}


def estimate_distinct(sketch: Ints) -> int:
    """How many distinct values there are: exact for few, within about 3 % for many."""
    if len(sketch) < SKETCHED:
        return len(sketch)
    return round((SKETCHED - 1) * 2.0**64 / float(sketch.view(np.uint64)[-1]))


def _hash_texts(values: pa.ChunkedArray) -> list[Ints]:
    """The hashes of the texts of a column, of dictionaries each once."""
    return [hash_like_spark(texts.cast(pa.large_string())) for texts in _list_texts(values)]


def _require_fit(values: pa.ChunkedArray, column: Column) -> tuple[float, float] | None:
    """Stop where a value may not fit its contract; returns the ends of numbers and times, None where there are none."""
    if column.pattern or (values.null_count and not column.may_be_null):
        raise DoubtfulRowsError
    if column.type == "string":
        for texts in _list_texts(values):
            _require_texts(texts, column)
        return None
    if column.type == "boolean":
        return None
    if column.type == "timestamp":
        values = values.cast(pa.timestamp("us")).cast(pa.int64())
    low, high = (end.as_py() for end in pc.min_max(values).values())
    if low is None:
        return None
    if column.type == "double" and not pc.all(pc.is_finite(values), min_count=0).as_py():
        raise DoubtfulRowsError
    least, most = {"int": (_INT.min, _INT.max), "timestamp": _TIMES}.get(column.type, (-np.inf, np.inf))
    least = least if column.minimum is None else max(least, column.minimum)
    most = most if column.maximum is None else min(most, column.maximum)
    if not least <= low <= high <= most:
        raise DoubtfulRowsError
    return low, high


def _require_texts(texts: pa.Array, column: Column) -> None:
    lengths = pc.binary_length(texts)
    shortest, longest = pc.min_max(lengths).values()
    if (longest.as_py() or 0) > MAX_TEXT:
        raise DoubtfulRowsError
    if not column.may_be_null and (shortest.as_py() == 0 or _begins_with_space(texts)):
        raise DoubtfulRowsError
    if column.choices and not pc.all(pc.is_in(texts, pa.array(column.choices, texts.type)), min_count=0).as_py():
        raise DoubtfulRowsError


def _require_one_of(rows: pa.Table, contract: Table) -> None:
    """Stop where a row has none of the columns of which it needs one."""
    choices = [rows[name] for name in contract.one_of if name in rows.column_names]
    if choices and all(values.null_count for values in choices):
        raise DoubtfulRowsError


def _list_texts(values: pa.ChunkedArray) -> list[pa.Array]:
    """The texts of a column, of dictionaries each once."""
    return [chunk.dictionary if pa.types.is_dictionary(values.type) else chunk for chunk in values.chunks]


def _begins_with_space(texts: pa.Array) -> bool:
    first = pc.starts_with(texts, " ")
    return bool(pc.any(first, min_count=0).as_py())


def _sum_lengths(values: pa.ChunkedArray) -> int:
    """The bytes of all texts."""
    if not pa.types.is_dictionary(values.type):
        return pc.sum(pc.binary_length(values), min_count=0).as_py()  # type: ignore[no-any-return]
    total = 0
    for chunk in values.chunks:
        lengths = pc.binary_length(chunk.dictionary).to_numpy(zero_copy_only=False).astype(np.int64)
        total += int(lengths[chunk.indices.drop_null().to_numpy()].sum())
    return total


def _select_sample(rows: pa.Table, sample: UnitSample) -> pa.Table:
    """The rows of the sampled units."""
    mask = np.concatenate([np.zeros(0, dtype=np.bool_), *map(partial(_is_inside, sample), rows[sample.unit].chunks)])
    if mask.sum() > sample.limit:  # Spark can tell whether these are equal rows
        raise DoubtfulRowsError
    names = [name for name in rows.column_names if name in (*sample.columns, *sample.ids, "system")]
    chosen = rows.select(names).filter(pa.array(mask))
    for name in names:
        if pa.types.is_dictionary(chosen[name].type):
            chosen = chosen.set_column(chosen.schema.get_field_index(name), name, chosen[name].cast(pa.string()))
    for name in names:
        if pa.types.is_string(chosen[name].type):
            _require_plain(chosen[name], sample)
    chosen = chosen.select([name for name in names if name in (*sample.columns, "system")])
    if DOCUMENT in sample.columns:
        texts = chosen["doc_id"].combine_chunks().cast(pa.large_string())
        chosen = chosen.append_column(DOCUMENT, pa.array(hash_like_spark(texts)))
    return chosen


def _is_inside(sample: UnitSample, ids: pa.Array) -> Bools:
    """Whether each row belongs to a sampled unit; rows without an id do not."""
    texts = ids.dictionary if pa.types.is_dictionary(ids.type) else ids
    inside = (hash_like_spark(texts.cast(pa.large_string())) & (BUCKETS - 1)) < sample.below
    if pa.types.is_dictionary(ids.type):
        inside = np.append(inside, False)[ids.indices.fill_null(len(inside)).to_numpy(zero_copy_only=False)]
    return np.asarray(inside & ids.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _require_plain(texts: pa.ChunkedArray, sample: UnitSample) -> None:
    """Stop where an id is too long for a sample, or garbled."""
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest > sample.longest or pc.any(pc.match_substring_regex(texts, sample.doubtful), min_count=0).as_py():
        raise DoubtfulRowsError
