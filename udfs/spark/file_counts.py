"""Count the rows of Parquet files inside Spark workers, where all of them fit their contract beyond doubt.

A row that may not fit ends the count: Spark then counts the table, and says what is wrong with each row. Doubtful are
also rows whose values only Spark knows how to treat, such as texts that begin with a space.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.table import MAX_TEXT, Column, Table
from udfs.spark.bundles import collect_rows
from udfs.spark.files import FilePart, cast_columns, read_file_part
from udfs.xxhash import hash_like_spark

COUNTED = "counted binary"
DOCUMENT = "document"  # of a sampled row, the hash of its document
GRADES = range(-1, 11)  # grades are counted by whole numbers; the first and last include all beyond them
BUCKETS = 1 << 20  # of the hashes of queries that samples are drawn by
_INT = np.iinfo(np.int32)

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class QuerySample:
    """Whole queries to collect: those whose hash, modulo `BUCKETS`, is below a limit."""

    columns: tuple[str, ...]
    below: int
    limit: int  # rows
    ids: tuple[str, ...]  # columns of ids
    doubtful: str  # a pattern of ids that are left to Spark
    longest: int  # bytes of a text; longer ones are left to Spark


@dataclass(frozen=True)
class FileCount:
    """Counts of rows that all fit their contract."""

    rows: int = 0
    nulls: Mapping[str, int] = field(default_factory=dict)  # by column
    text_bytes: int = 0
    systems: frozenset[str] = frozenset()
    max_grade: float | None = None
    grades: Mapping[int, int] = field(default_factory=dict)  # rows by whole grade
    sample: pa.Table | None = None


class DoubtfulRowsError(Exception):
    """Some rows may not fit their contract."""


def count_parts(
    parts: Sequence[FilePart], contracts: Mapping[str, Table], samples: Mapping[str, QuerySample]
) -> Callable[[Batches], Batches]:
    """The function from numbers of parts to their counts, pickled; that of a part with doubtful rows is None."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part = parts[number]
                counted = (part.table, count_part(part, contracts[part.table], samples.get(part.table)))
                yield pa.RecordBatch.from_pydict({"counted": pa.array([pickle.dumps(counted)], pa.binary())})

    return run


def count_part(part: FilePart, contract: Table, sample: QuerySample | None) -> FileCount | None:
    """The counts of a part; None where rows are doubtful."""
    try:
        chunks = [_count_rows(rows, part, contract, sample) for rows in collect_rows(read_file_part(part))]
        return merge_counts(chunks)
    except (DoubtfulRowsError, pa.ArrowException):
        return None


def merge_counts(counts: Sequence[FileCount]) -> FileCount:
    """The counts of all these rows."""
    nulls: Counter[str] = Counter()
    grades: Counter[int] = Counter()
    for count in counts:
        nulls.update(count.nulls)
        grades.update(count.grades)
    samples = [count.sample for count in counts if count.sample is not None]
    return FileCount(
        rows=sum(count.rows for count in counts),
        nulls=nulls,
        text_bytes=sum(count.text_bytes for count in counts),
        systems=frozenset().union(*[count.systems for count in counts]),
        max_grade=max((count.max_grade for count in counts if count.max_grade is not None), default=None),
        grades=grades,
        sample=pa.concat_tables(samples) if samples else None,
    )


def _count_rows(raw: pa.Table, part: FilePart, contract: Table, sample: QuerySample | None) -> FileCount:
    for name in part.columns:
        _require_fit(raw[name], contract[name])
    _require_one_of(raw, contract)
    rows = cast_columns(raw, part)
    texts = [name for name in part.columns if contract[name].type == "string"]
    max_grade, grades = None, dict[int, int]()
    if "grade" in part.columns:
        grade = rows["grade"].drop_null().to_numpy()
        max_grade = float(grade.max()) if len(grade) else None
        whole = np.clip(np.floor(grade), GRADES[0], GRADES[-1]).astype(np.int64) - GRADES[0]
        grades = dict(zip(GRADES, np.bincount(whole, minlength=len(GRADES)).tolist(), strict=True))
    return FileCount(
        rows=len(rows),
        nulls={name: rows[name].null_count for name in part.columns},
        text_bytes=sum(_sum_lengths(rows[name]) for name in texts),
        systems=frozenset(rows["system"].unique().to_pylist()) if "system" in part.columns else frozenset(),
        max_grade=max_grade,
        grades=grades,
        sample=None if sample is None else _select_sample(rows, sample),
    )


def _require_fit(values: pa.ChunkedArray, column: Column) -> None:
    """Stop where a value may not fit its contract."""
    if column.choices or column.pattern or (values.null_count and not column.may_be_null):
        raise DoubtfulRowsError
    if column.type == "string":
        for texts in _list_texts(values):
            lengths = pc.binary_length(texts)
            shortest, longest = pc.min_max(lengths).values()
            if (longest.as_py() or 0) > MAX_TEXT:
                raise DoubtfulRowsError
            if not column.may_be_null and (shortest.as_py() == 0 or _begins_with_space(texts)):
                raise DoubtfulRowsError
        return
    low, high = (end.as_py() for end in pc.min_max(values).values())
    if low is None:
        return
    if column.type == "double" and not pc.all(pc.is_finite(values), min_count=0).as_py():
        raise DoubtfulRowsError
    least, most = (_INT.min, _INT.max) if column.type == "int" else (-np.inf, np.inf)
    least = least if column.minimum is None else max(least, column.minimum)
    most = most if column.maximum is None else min(most, column.maximum)
    if not least <= low <= high <= most:
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


def _select_sample(rows: pa.Table, sample: QuerySample) -> pa.Table:
    """The rows of the sampled queries."""
    encoded = rows["query_id"].unify_dictionaries()
    masks = []
    inside = None
    for chunk in encoded.chunks:
        if inside is None:
            hashes = hash_like_spark(chunk.dictionary.cast(pa.large_string()))
            inside = (hashes & (BUCKETS - 1)) < sample.below
        masks.append(inside[chunk.indices.to_numpy()])
    mask = np.concatenate([np.zeros(0, dtype=np.bool_), *masks])
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


def _require_plain(texts: pa.ChunkedArray, sample: QuerySample) -> None:
    """Stop where an id is too long for a sample, or garbled."""
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest > sample.longest or pc.any(pc.match_substring_regex(texts, sample.doubtful), min_count=0).as_py():
        raise DoubtfulRowsError
