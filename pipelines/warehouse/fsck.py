"""Check a warehouse: every manifest against the files, sizes and schemas of its tables; what is left of other runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from pipelines.warehouse.code_version import hash_code
from pipelines.warehouse.day_records import DayRecord, day_folder, list_day_records
from pipelines.warehouse.runs import Manifest, TableRecord, manifest_path, read_manifests
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.vacuum import find_removable
from schemas.outputs import OUTPUTS
from schemas.redact import cut_text

RESTORE = "restore it from a backup, or remove the run's manifest {manifest} and evaluate its date again"
READABLE = "let the user that runs this command read it"
# Types of a contract as they are in a Parquet file.
TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "array<string>": pa.list_(pa.field("element", pa.string())),
}


@dataclass(frozen=True)
class Problem:
    """What is wrong with a file or folder of the warehouse, and what to do."""

    path: str
    problem: str
    advice: str


@dataclass(frozen=True)
class WarehouseState:
    """The number of runs that were checked, what is wrong, and files that belong to no committed run."""

    runs: int
    problems: tuple[Problem, ...]
    leftovers: tuple[str, ...]


def check_warehouse(storage: Storage) -> WarehouseState:
    """Check all runs; nothing is changed."""
    manifests, damaged = read_manifests(storage)
    advice = "restore it from a backup, or delete it; until then its run is not listed, and its tables are kept"
    problems = [Problem(file.path, file.problem, advice) for file in damaged]
    for manifest in manifests:
        for name, record in manifest.tables.items():
            problems += _check_table(storage, manifest, name, record)
    days = list(list_day_records(storage))
    for day in days:
        problems += _check_day(storage, day)
    committed = {place for day in days for place in (day.path, day_folder(day.dt, day.name))}
    orphans = find_removable(storage, keep=len(manifests) + 1, hours=0).orphans
    return WarehouseState(len(manifests), tuple(problems), tuple(name for name in orphans if name not in committed))


def _check_day(storage: Storage, day: DayRecord) -> Iterator[Problem]:
    """Check the number and size of the files of a day of `label_days`."""
    for record in day.tables.values():
        count, size = storage.measure(record.path, suffix=".parquet")
        if (count, size) != (record.files, record.bytes):
            wrong = f"has {count:,} files of {size:,} bytes, but its record has {record.files:,} of {record.bytes:,}"
            yield Problem(record.path, wrong, f"remove {day.path}: the next run computes the day again")


def _check_table(storage: Storage, manifest: Manifest, name: str, record: TableRecord) -> Iterator[Problem]:
    """Check one table of a run: number and size of its files, their rows and columns."""
    advice = RESTORE.format(manifest=manifest_path(manifest.dt, manifest.run))
    try:
        files = list(storage.list(record.path, suffix=".parquet"))
    except PermissionError as error:
        yield Problem(record.path, f"cannot be read: {error}", READABLE)
        return
    if not files:
        yield Problem(record.path, f"has no files, but the manifest has {record.rows:,} rows", advice)
        return
    count, size = storage.measure(record.path, suffix=".parquet")
    if record.files is not None and count != record.files:
        yield Problem(record.path, f"has {count:,} files, but the manifest has {record.files:,}", advice)
    elif record.bytes is not None and size != record.bytes:
        yield Problem(record.path, f"has {size:,} bytes, but the manifest has {record.bytes:,}", advice)
    rows, first = 0, None
    for file in files:
        try:
            footer = storage.read_footer(file)
        except (OSError, pa.ArrowInvalid) as error:
            todo = READABLE if isinstance(error, PermissionError) else advice
            yield Problem(file, f"cannot be read: {cut_text(' '.join(str(error).split()), 200)}", todo)
            continue
        rows += footer.num_rows
        schema = footer.schema.to_arrow_schema().remove_metadata()
        first = schema if first is None else first
        wrong = "has different columns from the files beside it" if schema != first else ""
        wrong = wrong or _describe_difference(name, schema, current=manifest.code == hash_code())
        if wrong:
            yield Problem(file, wrong, advice)
    if rows != record.rows:
        yield Problem(record.path, f"has {rows:,} rows, but the manifest has {record.rows:,}", advice)


def _describe_difference(name: str, schema: pa.Schema, *, current: bool) -> str:
    """Describe how the columns of a file differ from the contract of its table; empty if they do not.

    Only a run of the current code must have every column; there may always be more.
    """
    for column in OUTPUTS[name].columns if name in OUTPUTS else ():
        if column.name not in schema.names:
            if current:
                return f"lacks the column {column.name}"
            continue
        expected, actual = TYPES.get(column.type), schema.field(column.name).type
        if expected is not None and actual != expected:
            return f"has the column {column.name} as {actual}, not {expected}"
    return ""
