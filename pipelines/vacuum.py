"""Remove runs that newer ones of the same date have replaced, and what crashed runs left behind."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from pipelines.runs import REPORTS, RUNS, Manifest, manifest_name, recorded
from pipelines.storage import Storage


@dataclass(frozen=True)
class Rubbish:
    """What can go: runs beyond those to keep, and folders that no manifest refers to."""

    runs: tuple[Manifest, ...]
    orphans: tuple[str, ...]


def find(storage: Storage, *, keep: int, hours: float) -> Rubbish:
    """All but the newest `keep` runs of each date, committed or refused, and orphans older than `hours`."""
    manifests = recorded(storage)
    alike: dict[tuple[str, str], list[Manifest]] = defaultdict(list)
    for manifest in manifests:
        alike[manifest.dt, manifest.status].append(manifest)
    old = tuple(manifest for runs in alike.values() for manifest in runs[keep:])
    known = {folder for manifest in manifests for folder in _folders(manifest)}
    orphans = tuple(
        folder for folder in _run_folders(storage) if folder not in known and storage.age(folder) > hours * 3600
    )
    return Rubbish(old, orphans)


def remove(storage: Storage, rubbish: Rubbish) -> None:
    """Delete it, each manifest before its tables, so that no run is ever seen in part."""
    for manifest in rubbish.runs:
        storage.delete(manifest_name(manifest.dt, manifest.run))
        for report in storage.list(f"{REPORTS}/{manifest.dt}", suffix=".html"):
            if manifest.run in report:
                storage.delete(report)
        for folder in _folders(manifest):
            storage.delete(folder)
    for folder in rubbish.orphans:
        storage.delete(folder)


def _folders(manifest: Manifest) -> list[str]:
    """Everything that a manifest refers to."""
    documents = manifest.checks.get("docs")
    return [*[record.path for record in manifest.tables.values()], *([documents] if documents else [])]


def _run_folders(storage: Storage) -> list[str]:
    tables = [name for name in storage.list() if name not in (RUNS, REPORTS)]
    dates = [date for table in tables for date in storage.list(table) if "/dt=" in date]
    return [run for date in dates for run in storage.list(date) if "/run=" in run]
