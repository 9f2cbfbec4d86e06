"""Read rows of published tables for commands that only show them."""

from __future__ import annotations

from typing import Any

from pipelines.warehouse.damage import name_damage
from pipelines.warehouse.runs import Manifest, list_committed
from pipelines.warehouse.storage import Storage
from schemas.errors import InputError

NEEDED = {  # what to do where no run has a table
    "labels": "labels are published where they are built from a log; name a system with --system to explain its list",
}


def read_newest_rows(
    warehouse: str, name: str, *, date: str | None, run: str | None, query: str | None = None
) -> list[dict[str, Any]]:
    """Read a table of the newest run that has it, without Spark, optionally the rows of one query."""
    return read_rows(warehouse, find_newest_run(warehouse, name, date=date, run=run), name, query=query)


def find_newest_run(warehouse: str, name: str, *, date: str | None, run: str | None) -> Manifest:
    """Find the newest run that has a table."""
    matches = [m for m in list_committed(Storage(warehouse), date=date) if name in m.tables and run in (None, m.run)]
    if not matches:
        hint = NEEDED.get(name, "`assay runs` lists the runs")
        raise InputError(
            f"no committed run{_describe_choice(date, run)} has the table {name}", where=warehouse, hint=hint
        )
    return matches[0]


def _describe_choice(date: str | None, run: str | None) -> str:
    return f" {run}" if run is not None else "" if date is None else f" of {date}"


def read_rows(warehouse: str, manifest: Manifest, name: str, *, query: str | None = None) -> list[dict[str, Any]]:
    """Read a table of a run, optionally the rows of one query; no rows where the run does not have it."""
    import pyarrow.compute as pc

    if name not in manifest.tables:
        return []
    storage, place = Storage(warehouse), manifest.tables[name].path
    where = None if query is None else pc.field("query_id") == query
    with name_damage(f"run {manifest.run}", storage.path(place)):
        rows: list[dict[str, Any]] = storage.dataset(place).to_table(filter=where).to_pylist()
    return rows
