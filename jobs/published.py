"""Rows of published tables, for commands that only show them."""

from __future__ import annotations

from typing import Any

from pipelines.runs import committed
from pipelines.storage import Storage
from schemas.errors import InputError


def newest_rows(
    warehouse: str, name: str, *, date: str | None, run: str | None, query: str | None = None
) -> list[dict[str, Any]]:
    """The rows of a table in the newest run that has it, of one query where given; read without Spark."""
    import pyarrow.compute as pc

    storage = Storage(warehouse)
    found = [m for m in committed(storage, date=date) if name in m.tables and run in (None, m.run)]
    if not found:
        raise InputError(f"no committed run has the table {name}", where=warehouse, hint="`assay runs` lists the runs")
    data = storage.dataset(found[0].tables[name].path)
    chosen = None if query is None else pc.field("query_id") == query
    rows: list[dict[str, Any]] = data.to_table(filter=chosen).to_pylist()
    return rows
