"""The outbox: payloads that could not be sent, in `tracking/pending` of the warehouse, and where others were sent."""

from __future__ import annotations

import json
import logging

from pipelines.sharing.settings import TrackingSettings
from pipelines.sharing.tracking.protocol import Payload
from pipelines.warehouse.storage import Storage
from schemas.redact import cut_text, redact_text

logger = logging.getLogger(__name__)

PENDING, SENT = "tracking/pending", "tracking/sent"


def keep_payload(storage: Storage, payload: Payload) -> None:
    """Keep a payload until it can be sent."""
    storage.put(_path(payload), payload.model_dump_json())


def list_pending(storage: Storage) -> list[Payload]:
    """The payloads that wait to be sent, oldest date first."""
    payloads = []
    for name in storage.list(PENDING, suffix=".json"):
        try:
            payloads.append(Payload.model_validate_json(storage.get(name)))
        except (OSError, ValueError) as error:  # one bad file does not keep the others
            reason = cut_text(" ".join(str(error).split()), 200)
            logger.warning("skipped %s: %s; delete it and use `assay track --run`", storage.path(name), reason)
    return sorted(payloads, key=lambda payload: (payload.dt, payload.run))


def drop_payload(storage: Storage, payload: Payload) -> None:
    """Remove a payload that was sent; nothing happens where it was not kept."""
    storage.delete(_path(payload))


def _path(payload: Payload) -> str:
    return f"{PENDING}/{payload.run}.json"


def record_sent(storage: Storage, run: str, settings: TrackingSettings, place: str) -> None:
    """Record where a run was logged, so that a command that finds it committed need not ask the tracker."""
    storage.put(f"{SENT}/{run}.json", json.dumps(_describe_target(settings) | {"place": place}))


def find_sent(storage: Storage, run: str, settings: TrackingSettings) -> str | None:
    """Return where a run was logged with these settings; None where it was not."""
    try:
        record = json.loads(storage.get(f"{SENT}/{run}.json"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    return record.pop("place", None) if record.items() >= _describe_target(settings).items() else None


def _describe_target(settings: TrackingSettings) -> dict[str, str]:
    uri = "" if settings.uri is None else redact_text(settings.uri)
    return {"backend": settings.backend, "uri": uri, "experiment": settings.experiment}
