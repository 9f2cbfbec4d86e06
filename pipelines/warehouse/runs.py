"""Runs and their manifests: what was published, when, and from what."""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.warehouse.storage import Storage
from schemas.errors import InputError, did_you_mean
from schemas.problems import describe_problem

logger = logging.getLogger(__name__)

RUNS = "runs"
REPORTS = "reports"
LABEL_DAYS = "label_days"
COMMITTED, REFUSED = "committed", "refused"  # the status of a run

_TABLE_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
Count = Annotated[int, Field(ge=0, lt=2**63)]


class TableRecord(BaseModel):
    """The path and the size of a run's part of a table."""

    model_config = ConfigDict(frozen=True)

    path: str  # relative to the warehouse, so that a warehouse can be moved
    rows: Count
    files: Count | None = None  # None in runs of earlier versions
    bytes: Count | None = None


class Manifest(BaseModel):
    """The record of one run; writing it commits the run."""

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
    labels: Mapping[str, Any] = {}  # how the labels were built from a log: counts and diagnostics
    checks: Mapping[str, Any] = {}  # results of the quality checks: counts per table, failures and figures


@dataclass(frozen=True)
class DamagedManifest:
    """A file among the manifests that is none, or not the one of its name."""

    path: str
    problem: str


def table_path(name: str, date: str, run: str) -> str:
    """Return the folder of a run's part of a table in the warehouse."""
    return f"{name}/dt={date}/run={run}"


def manifest_path(date: str, run: str) -> str:
    """Return the path of a run's manifest in the warehouse."""
    return f"{RUNS}/{date}/{run}.json"


def report_path(date: str, run: str) -> str:
    """Return the path of a run's HTML report in the warehouse."""
    return f"{REPORTS}/{date}/{run}.html"


def list_recorded(storage: Storage, *, date: str | None = None) -> list[Manifest]:
    """List committed and refused runs, newest first; a refused run has only its validation results."""
    manifests, damaged = read_manifests(storage, date=date)
    for file in damaged:
        if (storage.uri, file) not in _reported:  # once, however often a command lists the runs
            _reported.add((storage.uri, file))
            logger.warning("skipped %s: %s; `assay fsck` says what to do", storage.path(file.path), file.problem)
    return manifests


_reported: set[tuple[str, DamagedManifest]] = set()


def read_manifests(storage: Storage, *, date: str | None = None) -> tuple[list[Manifest], list[DamagedManifest]]:
    """Read all manifests, newest first; and what is in their place but cannot be used."""
    manifests, damaged = [], []
    for name in storage.list(f"{RUNS}/{date}" if date else RUNS, suffix=".json", recursive=True):
        try:
            manifest = Manifest.model_validate_json(storage.get(name))
        except FileNotFoundError:  # removed since it was listed
            continue
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            problem = f"{place}{': ' if place else ''}{describe_problem(first)}"
            damaged.append(DamagedManifest(name, f"not a manifest: {problem}"))
        except (OSError, UnicodeDecodeError) as error:
            damaged.append(DamagedManifest(name, f"cannot be read: {error}"))
        else:
            problem = _find_foreign_name(name, manifest)
            if problem:
                damaged.append(DamagedManifest(name, problem))
            else:
                manifests.append(manifest)
    return sorted(manifests, key=lambda manifest: (manifest.committed_at, manifest.run), reverse=True), damaged


def _find_foreign_name(name: str, manifest: Manifest) -> str:
    """Describe how a manifest differs from its place; empty if it does not."""
    if name != manifest_path(manifest.dt, manifest.run):
        return f"it is the manifest of run {manifest.run!r} of {manifest.dt!r}"
    for field, parse in (("dt", dt.date.fromisoformat), ("committed_at", dt.datetime.fromisoformat)):
        try:
            parse(getattr(manifest, field))
        except ValueError:
            return f"its {field} is {getattr(manifest, field)!r}"
    for table, record in manifest.tables.items():
        if not _TABLE_NAME.fullmatch(table):  # which is part of paths and of SQL
            return f"its table {table!r} is not a name of lower case letters, digits and _"
        if record.path != table_path(table, manifest.dt, manifest.run):
            return f"its table {table!r} is at {record.path!r}, outside the folders of the run"
    return ""


def list_committed(storage: Storage, *, date: str | None = None) -> list[Manifest]:
    """List the committed runs, newest first, optionally of one date."""
    return [manifest for manifest in list_recorded(storage, date=date) if manifest.status == COMMITTED]


def stamp_commit(storage: Storage, date: str) -> str:
    """Return the time of a commit: now, or just after the newest run of the date where the clock was set back."""
    now = dt.datetime.now(dt.UTC)
    for manifest in read_manifests(storage, date=date)[0]:
        with suppress(TypeError, OverflowError):  # a time without a zone, or at the end of all times
            now = max(now, dt.datetime.fromisoformat(manifest.committed_at) + dt.timedelta(microseconds=1))
    return now.isoformat(timespec="microseconds")


def select_live(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Select the newest run of each date, latest date first."""
    newest: dict[str, Manifest] = {}
    for manifest in manifests:
        best = newest.get(manifest.dt)
        if best is None or (manifest.committed_at, manifest.run) > (best.committed_at, best.run):
            newest[manifest.dt] = manifest
    return sorted(newest.values(), key=lambda manifest: manifest.dt, reverse=True)


def find_run(storage: Storage, name: str | None = None, *, having: str | None = None) -> Manifest:
    """Find the run with this id, or the newest run of this date or of all, among those with the table `having`."""
    runs = [m for m in list_committed(storage) if having is None or having in m.tables]
    matches = [m for m in runs if name in (None, m.run)] or [m for m in runs if m.dt == name]
    if matches:
        return matches[0]
    with_table = f" with the table {having}" if having else ""
    names = {m.run for m in runs} | {m.dt for m in runs}
    raise InputError(
        f"there is no run {name!r}{with_table}" if name else f"there is no committed run{with_table}",
        where=storage.uri,
        hint=did_you_mean(name or "", names) if names else "create one with `assay evaluate`",
    )


def find_labels_run(storage: Storage, name: str) -> str:
    """Find the newest committed run with this id or date that has labels."""
    matches = [m.run for m in list_committed(storage) if name in (m.run, m.dt) and "labels" in m.tables]
    if not matches:
        hint = "create labels with `assay label`; `assay runs` lists the runs"
        raise InputError(f"no run or date {name!r} has labels", where="labels_of", hint=hint)
    return matches[0]
