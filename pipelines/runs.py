"""Runs: what was published, when, from what. A run exists when its manifest does."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from pipelines.storage import Storage
from schemas.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUNS = "runs"
REPORTS = "reports"
_OURS = ("schemas", "udfs", "pipelines", "jobs")


class Manifest(BaseModel):
    """The record of one run; writing it is what commits the run."""

    model_config = ConfigDict(frozen=True)

    run: str
    key: str
    dt: str
    status: str
    committed_at: str
    seconds: Mapping[str, float]
    config: Mapping[str, Any]
    config_hash: str
    code: str
    spark: str
    inputs: Mapping[str, Any]
    systems: tuple[str, ...]
    conventions: Mapping[str, Any]
    tables: Mapping[str, TableRecord]
    gate: tuple[Mapping[str, Any], ...] = ()
    readings: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, Any] = {}  # how a log became labels: counts and verdicts
    checks: Mapping[str, Any] = {}  # what was found of the data: counts per table, what failed, and figures


class TableRecord(BaseModel):
    """Where a run's part of a table lies, and how long it is."""

    model_config = ConfigDict(frozen=True)

    path: str  # relative to the warehouse, so that a warehouse can be moved
    rows: int


def run_key(date: dt.date, settings: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """What makes two runs the same work: the date, the configuration, the data and the code."""
    return digest([date.isoformat(), settings, inputs, code_version()])[:12]


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def code_version() -> str:
    """A digest of the source files that are running."""
    content = hashlib.sha256()
    for package in _OURS:
        for source in _sources(files(package)):
            content.update(source.read_bytes())
    return content.hexdigest()[:12]


def _sources(folder: Traversable) -> Iterable[Traversable]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _sources(entry)
        elif entry.name.endswith(".py"):
            yield entry


def manifest_name(date: str, run: str) -> str:
    return f"{RUNS}/{date}/{run}.json"


def report_name(date: str, run: str) -> str:
    return f"{REPORTS}/{date}/{run}.html"


def committed(storage: Storage, *, date: str | None = None) -> list[Manifest]:
    """The committed runs, newest first; of one date where it is given."""
    names = storage.list(f"{RUNS}/{date}" if date else RUNS, suffix=".json", recursive=True)
    manifests = [Manifest.model_validate_json(storage.get(name)) for name in names]
    return sorted(manifests, key=lambda manifest: (manifest.committed_at, manifest.run), reverse=True)


def live(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Of each date the newest run, latest date first."""
    newest: dict[str, Manifest] = {}
    for manifest in manifests:
        best = newest.get(manifest.dt)
        if best is None or (manifest.committed_at, manifest.run) > (best.committed_at, best.run):
            newest[manifest.dt] = manifest
    return sorted(newest.values(), key=lambda manifest: manifest.dt, reverse=True)


def find_run(storage: Storage, name: str | None = None, *, having: str | None = None) -> Manifest:
    """The run with this id, or the newest of this date, or the newest of all; of those that have a table, if named."""
    every = committed(storage)
    fit = [m for m in every if having is None or having in m.tables]
    found = [m for m in fit if name in (None, m.run)] or [m for m in fit if m.dt == name]
    if not found:
        with_table = f" with the table {having}" if having else ""
        what = f"there is no run {name!r}{with_table}" if name else f"there is no committed run{with_table}"
        known = {m.run for m in fit} | {m.dt for m in fit}
        hint = did_you_mean(name or "", known) if known else "`assay evaluate` makes runs, `assay runs` lists them"
        raise InputError(what, where=storage.uri, hint=hint)
    return found[0]


def labels_run(storage: Storage, wanted: str) -> str:
    """The newest committed run of that name or date that has labels."""
    found = [m for m in committed(storage) if wanted in (m.run, m.dt) and "labels" in m.tables]
    if not found:
        hint = "`assay label` makes labels, `assay runs` lists the runs"
        raise InputError(f"no run or date {wanted!r} has labels", where="labels_of", hint=hint)
    return found[0].run


def read_table(
    spark: SparkSession, warehouse: str, name: str, *, date: str | None = None, run: str | None = None
) -> DataFrame:
    """A published table with its `dt` and `run`: the newest run of every date, or of one, or the run asked for.

    A run need not have every table (one that only made labels has no metrics), and does not hide those of others.
    """
    storage = Storage(warehouse)
    manifests = [m for m in committed(storage, date=date) if run in (None, m.run)]
    if not manifests:
        what = f"run {run}" if run else f"run of {date}" if date else "run"
        raise InputError(f"there is no committed {what}", where=warehouse, hint="`assay runs` lists them")
    held = [m.tables[name].path for m in live(m for m in manifests if name in m.tables)]
    if not held:
        raise InputError(f"no table {name!r}", where=warehouse, hint=did_you_mean(name, manifests[0].tables))
    options = {"basePath": storage.path(name), "mergeSchema": "true"}
    return spark.read.options(**options).parquet(*[storage.path(path) for path in held])


Manifest.model_rebuild()
