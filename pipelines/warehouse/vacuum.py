"""Remove runs that newer ones of their date replace, days of logs that no window needs, and what crashes left."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass

from pipelines.warehouse.leftovers import (
    ATTEMPTS,
    attempt_path,
    claim_attempt,
    find_abandoned_parts,
    list_attempts,
    remove_attempt,
)
from pipelines.warehouse.runs import (
    LABEL_DAYS,
    REPORTS,
    RUNS,
    Manifest,
    list_committed,
    list_recorded,
    manifest_path,
    select_live,
)
from pipelines.warehouse.storage import Storage
from schemas.errors import PublishError


@dataclass(frozen=True)
class RemovalPlan:
    """Runs beyond those to keep, and files and folders that no manifest names."""

    runs: tuple[Manifest, ...]
    orphans: tuple[str, ...]


def find_removable(storage: Storage, *, keep: int, hours: float) -> RemovalPlan:
    """Find all but the newest `keep` runs of each date and status, and what unfinished runs left.

    What belongs to a process that has ended is removable at once, other orphans when they are older than `hours`.
    """
    # In this order: what has been moved to its place belongs to an attempt that is still open, or to a manifest.
    folders = _split_run_folders(storage)
    states = {run: state for run, _, state in list_attempts(storage)}
    # A damaged manifest protects its run too: the tables are whole, and a backup can restore it.
    committed = {name.removesuffix(".json") for name in storage.list(RUNS, suffix=".json", recursive=True)}
    orphans = [
        folder
        for folder, date, run in folders
        if f"{RUNS}/{date}/{run}" not in committed and _is_abandoned(storage, folder, states.get(run), hours)
    ]
    orphans += [
        attempt_path(run) for run, state in states.items() if _is_abandoned(storage, attempt_path(run), state, hours)
    ]
    groups: dict[tuple[str, str], list[Manifest]] = defaultdict(list)
    for manifest in list_recorded(storage):
        groups[manifest.dt, manifest.status].append(manifest)
    old = tuple(manifest for runs in groups.values() for manifest in runs[keep:])
    orphans += [] if "running" in states.values() else find_unused_days(storage, hours=hours)
    return RemovalPlan(old, (*orphans, *find_abandoned_parts(storage, hours=hours)))


def find_unused_days(storage: Storage, *, hours: float) -> list[str]:
    """Find what the newest window does not use of `label_days`: records first, then their folders.

    The newest window is that of the live run of the latest date with incremental labels. Days younger than `hours`
    stay, whoever computed them.
    """
    live = (manifest.labels["days"] for manifest in select_live(list_committed(storage)) if "days" in manifest.labels)
    used = {name.removesuffix(".json") for name in next(live, ())}
    names = [name for date in storage.list(LABEL_DAYS) for name in storage.list(date)]
    unused = [name for name in names if _name_day(name) not in used and storage.age(name) > hours * 3600]
    return sorted(unused, key=lambda name: not name.endswith(".json"))


def _name_day(name: str) -> str:
    """The day that a record or a folder belongs to: its record without the ending."""
    return name.removesuffix(".json").replace("/key=", "/")


def remove_runs(storage: Storage, removable: RemovalPlan) -> None:
    """Delete each manifest before its tables, so that readers never see part of a run.

    The folders follow from date and run, so nothing that a manifest says can make this delete anything else.
    """
    for manifest in removable.runs:
        _remove_run(storage, manifest)
    for name in removable.orphans:
        storage.delete(name)


def _remove_run(storage: Storage, manifest: Manifest) -> None:
    """Delete a run, named as an attempt of this process: if that is killed, the rest can be removed at once."""
    with suppress(PublishError):  # another process removes the run too, or the disk is full
        claim_attempt(storage, manifest.dt, manifest.run)
    storage.delete(manifest_path(manifest.dt, manifest.run))
    for report in storage.list(f"{REPORTS}/{manifest.dt}", suffix=".html"):
        if manifest.run in report:
            storage.delete(report)
    remove_attempt(storage, manifest.dt, manifest.run)


def _is_abandoned(storage: Storage, folder: str, state: str | None, hours: float) -> bool:
    return state == "ended" or (state != "running" and storage.age(folder) > hours * 3600)


def _split_run_folders(storage: Storage) -> list[tuple[str, str, str]]:
    """List the folders of all runs' tables, each with its date and run."""
    tables = [name for name in storage.list() if name not in (RUNS, REPORTS, ATTEMPTS)]
    dates = [date for table in tables for date in storage.list(table) if "/dt=" in date]
    folders = [run for date in dates for run in storage.list(date) if "/run=" in run]
    return [(folder, folder.split("/dt=")[1].split("/")[0], folder.rpartition("/run=")[2]) for folder in folders]
