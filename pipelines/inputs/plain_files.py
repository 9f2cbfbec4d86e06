"""Inputs that workers can read without Spark: Parquet files on this machine whose columns are those of a contract.

Spark decodes, checks and converts row by row what it passes to Python; Arrow reads such files as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa

from pipelines.inputs.read import InputTable
from pipelines.inputs.settings import InputSource
from pipelines.warehouse.listeners import has_listeners
from schemas.conform import ConformedTable, map_names
from schemas.table import Table
from udfs.spark.files import FilePart, open_file

# Of judged lists, documents rarely repeat within a file; of a log, all but the events do.
_REPEATED = ("query_id", "system")
_READERS = 8  # of footers: a log of weeks has thousands of files
_UNIQUE: Mapping[str, tuple[str, ...]] = {"impressions": (), "interactions": ("event_id",)}  # by table


@dataclass(frozen=True)
class PlainFile:
    """A file, and the rows of each of its row groups."""

    path: str
    groups: tuple[int, ...]


@dataclass(frozen=True)
class PlainFiles:
    """The files of an input.

    `columns` has the name in the files of each column of the contract that they have, without those of `others`, whose
    values only Spark knows how to read.
    """

    files: tuple[PlainFile, ...]
    columns: Mapping[str, str]
    others: frozenset[str]
    contract: Table

    @property
    def rows(self) -> int:
        return sum(sum(file.groups) for file in self.files)

    def can_read(self, names: Collection[str]) -> bool:
        """Whether workers can read these columns, as far as the files have them."""
        return self.others.isdisjoint(names)


def find_plain_files(source: InputSource, table: InputTable, conformed: ConformedTable) -> PlainFiles | None:
    """The files of an input, if reading them gives its rows; None where only Spark knows how to."""
    if not source.is_plain or not table.is_local:
        return None
    spark = table.raw.sparkSession
    if not str(spark.conf.get("spark.master", "")).startswith("local") or has_listeners(spark):
        return None
    columns = map_names(table.raw.columns, conformed.table, source.columns)
    if not set(columns) <= set(conformed.table.names):  # arrays of documents, which become rows
        return None
    paths = [unquote(urlparse(uri).path) for uri in table.raw.inputFiles()]
    if not paths or _list_partition_columns(paths) & {name.lower() for name in columns.values()}:
        return None
    try:
        with ThreadPoolExecutor(_READERS) as readers:
            schemas, files = zip(*readers.map(_describe_file, sorted(paths)), strict=True)
    except (OSError, pa.ArrowException):  # Spark reports what cannot be read
        return None
    plain = {
        name: there
        for name, there in columns.items()
        if all(_is_plain(schema, there, conformed.table[name].type) for schema in schemas)
    }
    return PlainFiles(files, plain, frozenset(columns.keys() - plain.keys()), conformed.table)


def _list_partition_columns(paths: Collection[str]) -> set[str]:
    """The columns that Spark may read from the names of folders, instead of those in the files."""
    folders = {folder for path in paths for folder in path.split("/")[:-1]}
    return {folder.partition("=")[0].lower() for folder in folders if "=" in folder}


def _describe_file(path: str) -> tuple[pa.Schema, PlainFile]:
    with open_file(path) as file:
        rows = tuple(file.metadata.row_group(at).num_rows for at in range(file.num_row_groups))
        return file.schema_arrow, PlainFile(path, rows)


def _is_plain(schema: pa.Schema, name: str, wanted: str) -> bool:
    """Whether a file has the column, in a type that Arrow casts to that of the contract as Spark does."""
    at = schema.get_all_field_indices(name)
    if len(at) != 1:
        return False
    kind = schema.field(at[0]).type
    if wanted == "string":
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_signed_integer(kind))
    if wanted == "timestamp":
        return bool(pa.types.is_timestamp(kind)) and kind.unit in ("ms", "us")
    if wanted == "boolean":
        return bool(pa.types.is_boolean(kind))
    is_float = pa.types.is_float32(kind) or pa.types.is_float64(kind)
    return bool(pa.types.is_signed_integer(kind) or is_float) and wanted in ("int", "double")[is_float:]


def split_files(files: PlainFiles, names: Collection[str], rows: int) -> list[FilePart]:
    """The columns of the files that have these names, in parts of about `rows` rows."""
    columns = {name: there for name, there in files.columns.items() if name in names}
    types = {name: files.contract[name].type for name in columns}
    repeated = list_repeated(files.contract, columns)
    parts = []
    for file in files.files:
        size = sum(file.groups)
        limit = max(1.0, size / max(1, round(size / rows)))
        taken = np.minimum((np.cumsum(file.groups) - file.groups) // limit, size // limit)
        for number in np.unique(taken):
            groups = tuple(np.flatnonzero(taken == number).tolist())
            held = sum(file.groups[group] for group in groups)
            parts.append(FilePart(files.contract.name, file.path, groups, held, columns, types, repeated))
    return parts


def group_parts(parts: Sequence[FilePart], rows: int) -> list[list[FilePart]]:
    """The parts in tasks of about `rows` rows, each with one part at least."""
    ends = np.cumsum([part.rows for part in parts])
    task = (ends - 1) // max(rows, 1)
    return [[parts[at] for at in np.flatnonzero(task == number).tolist()] for number in np.unique(task)]


def list_repeated(contract: Table, names: Collection[str]) -> frozenset[str]:
    """Those of the columns whose texts repeat within a file."""
    texts = frozenset(name for name in names if contract[name].type == "string")
    return texts - set(_UNIQUE[contract.name]) if contract.name in _UNIQUE else texts & set(_REPEATED)
