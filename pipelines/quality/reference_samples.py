"""Samples of whole queries, pages and events, which keys and references are checked on.

The same ones are sampled in every table: those whose hash is below a limit. Rows of queries are sampled in the pass
that counts all rows; those of pages and events too where workers read the files, and otherwise in one more pass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.inputs.count import RowSample
from pipelines.quality.row_figures import DISTINCT
from schemas.conform import ConformedTable
from schemas.table import Table
from udfs.spark.file_counts import BUCKETS, DOCUMENT, FileRequest, UnitSample

BY_QUERY = ("rankings", "judgments", "opinions", "queries", "decisions")
BY_PAGE = ("impressions", "interactions")
QUERY, PAGE = "query_id", "serp_id"
BY_KEY = {"interactions": "event_id", "documents": "doc_id"}  # tables whose key is neither a query nor a page
# Control characters, the replacement character, and UTF-8 that was read as Latin-1.
GARBLED = "[\\x00-\\x1f\\x7f\ufffd]|[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac"
ONE_PER_PAGE = ("query_id", "user_id", "system")
MAX_SAMPLED_TEXT = 400  # bytes of an id in a sample
SLACK = 2  # a sample may have this many times its target of rows: a page or query may be far longer than the others
_QUERY_COLUMNS = ("query_id", "doc_id", "rank")  # the system is a key of the counts already
_PAGE_COLUMNS = ("serp_id", "doc_id", "position", *ONE_PER_PAGE)

Inputs = Mapping[str, ConformedTable]
Rows = Mapping[str, DataFrame]
FileSamples = Mapping[str, Mapping[str, pa.Table]]  # by table and unit: the rows that workers sampled


@dataclass(frozen=True)
class Samples:
    """What to sample in the pass that counts the rows, by input: with Spark, and where workers read the files."""

    of_rows: Mapping[str, RowSample] = field(default_factory=dict)
    of_files: Mapping[str, FileRequest] = field(default_factory=dict)


def request_samples(inputs: Inputs, *, target: int) -> Samples:
    """Samples of about `target` rows of the longest table; of pages and events only where their files are counted."""
    by_query = {name: conformed for name, conformed in inputs.items() if name in BY_QUERY}
    share = compute_share(_count_rows(by_query), target) if by_query else 1.0
    units: dict[str, list[UnitSample]] = {name: [] for name in inputs}
    for name, conformed in by_query.items():
        units[name].append(_sample_unit(conformed.table, QUERY, _list_query_columns(conformed.table), share, target))
    rows = {name: conformed.known_rows for name, conformed in inputs.items() if conformed.known_rows is not None}
    by_page = {name: rows[name] for name in BY_PAGE if name in rows}
    if len(by_page) == len(BY_PAGE & inputs.keys()):
        share_of_pages, most = compute_share(by_page, target), target * len(by_page)
        for name in by_page:
            units[name].append(_sample_unit(inputs[name].table, PAGE, _PAGE_COLUMNS, share_of_pages, most))
    for name in BY_KEY.keys() & rows.keys():
        table, share_of_keys = inputs[name].table, compute_share({name: rows[name]}, target)
        units[name].append(_sample_unit(table, BY_KEY[name], table.key, share_of_keys, target))
    distinct = {"impressions": tuple(DISTINCT)}
    return Samples(
        of_rows={name: _sample_queries(conformed, share, target) for name, conformed in by_query.items()},
        of_files={name: FileRequest(tuple(samples), distinct.get(name, ())) for name, samples in units.items()},
    )


def _list_query_columns(table: Table) -> list[str]:
    columns = [name for name in _QUERY_COLUMNS if name in table.names]
    return [*columns, "garbled", *([DOCUMENT] if "doc_id" in columns else [])]


def _sample_queries(conformed: ConformedTable, share: float, target: int) -> RowSample:
    table, values = conformed.table, {"garbled": _select_garbled(conformed.table), DOCUMENT: F.xxhash64("doc_id")}
    columns = {name: values[name] if name in values else _shorten(table, name) for name in _list_query_columns(table)}
    return RowSample(columns, where=_hash_below(QUERY, share) & conformed.reason.isNull(), limit=SLACK * target)


def _sample_unit(table: Table, unit: str, columns: Sequence[str], share: float, target: int) -> UnitSample:
    return UnitSample(
        unit=unit,
        columns=tuple(columns),
        below=_find_limit(share),
        limit=SLACK * target,
        ids=tuple(_list_ids(table)),
        doubtful=GARBLED,
        longest=MAX_SAMPLED_TEXT,
    )


def collect_pages(inputs: Inputs, counts: Mapping[str, int], of_files: FileSamples, target: int) -> pa.Table:
    """The rows of the sampled pages, impressions and events that name their page."""
    from_files = {name: of_files[name][PAGE] for name in inputs if PAGE in of_files.get(name, {})}
    if len(from_files) == len(inputs):
        return _join_rows(inputs, from_files, _PAGE_COLUMNS)
    sampled = _sample_rows(inputs, PAGE, counts, target)
    on_pages = {name: rows.where(F.col(PAGE).isNotNull()) for name, rows in sampled.items()}
    return _collect_rows(inputs, on_pages, _PAGE_COLUMNS, target)


def collect_keys(table: ConformedTable, counts: Mapping[str, int], of_files: FileSamples, target: int) -> pa.Table:
    """The keys of the sampled rows of a table of `BY_KEY`."""
    name, inputs = table.table.name, {table.table.name: table}
    unit, key = BY_KEY[name], table.table.key
    if unit in of_files.get(name, {}):
        return _join_rows(inputs, {name: of_files[name][unit]}, key)
    return _collect_rows(inputs, _sample_rows(inputs, unit, counts, target), key, target)


def _count_rows(inputs: Inputs) -> dict[str, int]:
    """The rows of each input; formats that store their number of rows are not scanned."""
    from_footers = {
        name: conformed.known_rows for name, conformed in inputs.items() if conformed.known_rows is not None
    }
    counts = [
        conformed.marked_rows.agg(F.count("*").alias("rows")).select(F.lit(name).alias("table"), "rows")
        for name, conformed in inputs.items()
        if name not in from_footers
    ]
    counted = reduce(DataFrame.unionByName, counts).collect() if counts else []
    return from_footers | {row["table"]: row["rows"] for row in counted}


def compute_share(counts: Mapping[str, int], target: int) -> float:
    return target / max((1, *counts.values()))


def _hash_below(unit: str, share: float) -> Column:
    """Whether the hash of a unit falls into this share of all hashes."""
    return F.lit(True) if share >= 1 else F.xxhash64(unit).bitwiseAND(F.lit(BUCKETS - 1)) < _find_limit(share)


def _find_limit(share: float) -> int:
    return BUCKETS if share >= 1 else round(share * BUCKETS)


def _sample_rows(inputs: Inputs, unit: str, counts: Mapping[str, int], target: int) -> Rows:
    """The rows of whole units, about `target` rows of the longest table; all rows where it has fewer."""
    in_sample = _hash_below(unit, compute_share({name: counts[name] for name in inputs}, target))
    return {name: conformed.rows_where(in_sample) for name, conformed in inputs.items()}


def _collect_rows(inputs: Inputs, rows: Rows, columns: Sequence[str], target: int) -> pa.Table:
    """These columns of all tables, null where a table has none, and the ids of a row where they are garbled."""
    types = {c.name: c.type for name in rows for c in inputs[name].table.columns}
    parts = []
    for name, table in rows.items():
        names = inputs[name].table.names
        selected = [
            _shorten(inputs[name].table, c).alias(c) if c in names else F.lit(None).cast(types[c]).alias(c)
            for c in columns
            if c in types
        ]
        added = [
            F.lit(name).alias("table"),
            _select_garbled(inputs[name].table).alias("garbled"),
            F.lit(1).alias("rows"),
        ]
        parts.append(table.select(*selected, *added))
    return reduce(DataFrame.unionByName, parts).limit(max_rows(rows, target)).toArrow()


def _join_rows(inputs: Inputs, rows: Mapping[str, pa.Table], columns: Sequence[str]) -> pa.Table:
    """The rows that workers sampled in the columns that `_collect_rows` returns; none of them has a garbled id."""
    types = {c.name: c.type for name in rows for c in inputs[name].table.arrow_schema()}
    parts = []
    for name, table in rows.items():
        arrays = {
            c: table[c].cast(types[c]) if c in table.column_names else pa.nulls(table.num_rows, types[c])
            for c in columns
            if c in types
        }
        arrays["table"] = pa.repeat(name, table.num_rows)
        arrays["garbled"] = pa.nulls(table.num_rows, pa.string())
        arrays["rows"] = pa.repeat(pa.scalar(1, pa.int32()), table.num_rows)
        parts.append(pa.table(arrays))
    return pa.concat_tables(parts)


def max_rows(tables: Collection[str], target: int) -> int:
    return SLACK * target * len(tables)


def _select_garbled(table: Table) -> Column:
    """The ids of a row where one of them is garbled, else null."""
    ids = F.concat_ws(" ", *_list_ids(table))
    return F.when(ids.rlike(GARBLED), _abbreviate(ids))


def _list_ids(table: Table) -> list[str]:
    return [c.name for c in table.columns if c.type == "string" and (c.name.endswith("_id") or c.name == "system")]


def _shorten(table: Table, name: str) -> Column:
    """A column of the sample; a long text is replaced by its start and a hash, so that a sample is bounded in bytes."""
    return _abbreviate(F.col(name)) if table[name].type == "string" else F.col(name)


def _abbreviate(text: Column) -> Column:
    short = F.concat(F.substring(text, 1, MAX_SAMPLED_TEXT // 4), F.lit("…"), F.hex(F.xxhash64(text)))
    return F.when(F.octet_length(text) > MAX_SAMPLED_TEXT, short).otherwise(text)
