"""Publish a run of one warehouse in another, with the same key."""

from __future__ import annotations

import datetime as dt

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.runs import Manifest, list_committed, table_path
from pipelines.warehouse.storage import Storage

_OWN = {"run", "key", "dt", "status", "committed_at", "tables"}  # what the copy has of its own


def republish_run(source: Storage, manifest: Manifest, target: Storage) -> Manifest:
    """Copy a committed run; one of the same key that is committed in `target` already is returned instead."""
    committed = next((m for m in list_committed(target, date=manifest.dt) if m.key == manifest.key), None)
    if committed is not None:
        return committed
    with Attempt(target, dt.date.fromisoformat(manifest.dt), manifest.key) as attempt:
        for name, record in manifest.tables.items():
            attempt.copy(name, source, record)
        facts = manifest.model_dump(exclude=_OWN)
        facts["config"] = {**facts["config"], "warehouse": target.uri}
        if "docs" in manifest.checks:
            docs = manifest.checks["docs"]
            folder = table_path(docs.partition("/")[0], attempt.dt, attempt.run)
            target.copy(folder, source, docs)
            facts["checks"] = {**facts["checks"], "docs": folder}
        return attempt.commit(**facts)
