"""Tracking: a published run told to MLflow, or kept until MLflow can be reached."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

from pipelines.config_sharing import Tracking
from pipelines.runs import Manifest
from pipelines.storage import Storage
from pipelines.track.payload import Payload, payload_of
from schemas.errors import ConfigurationError, TrackingError

__all__ = ["keep", "pending", "reach", "send_kept", "store_of", "track", "warm"]

logger = logging.getLogger(__name__)

PENDING = "tracking/pending"


def store_of(tracking: Tracking, storage: Storage) -> str:
    """The URI of the store: as configured, or SQLite inside a local warehouse."""
    if tracking.uri is not None:
        return tracking.uri
    if not storage.uri.startswith("file://"):
        hint = "set tracking.uri, or tracking.enabled to false"
        raise ConfigurationError(f"there is no place for SQLite in {storage.uri}", where="tracking.uri", hint=hint)
    return f"sqlite:///{storage.local('mlflow/mlflow.db')}"


def track(storage: Storage, manifest: Manifest, tracking: Tracking) -> str:
    """Tell MLflow of a run and answer where it is; where MLflow cannot be reached, keep the payload and raise."""
    payload = payload_of(storage, manifest, tracking.experiment)
    try:
        return send_kept(storage, payload, tracking)
    except TrackingError:
        keep(storage, payload)
        raise


def keep(storage: Storage, payload: Payload) -> None:
    """Keep a payload in the warehouse until it can be sent."""
    storage.put(_name(payload.run), payload.model_dump_json())


def pending(storage: Storage) -> Iterator[Payload]:
    """The payloads that wait to be sent, oldest date first."""
    kept = [Payload.model_validate(json.loads(storage.get(n))) for n in storage.list(PENDING, suffix=".json")]
    yield from sorted(kept, key=lambda payload: (payload.dt, payload.run))


def send_kept(storage: Storage, payload: Payload, tracking: Tracking) -> str:
    """Send a payload, and forget that it was kept."""
    from pipelines.track.send import send

    store = _ready(tracking, storage)
    place = send(payload, storage, store, seconds=tracking.seconds)
    storage.delete(_name(payload.run))
    return place


def warm(storage: Storage, tracking: Tracking) -> None:
    """Import MLflow and open its store, which takes seconds, so that it is done when a run is."""
    from pipelines.track.send import client_of

    client_of(_ready(tracking, storage), tracking.seconds)


def reach(storage: Storage, tracking: Tracking) -> str:
    """Ask MLflow for the experiment, and say where it answered from."""
    from pipelines.track.send import client_of, complaining, plain

    store = _ready(tracking, storage)
    with complaining(store):
        found = client_of(store, tracking.seconds).get_experiment_by_name(tracking.experiment)
    return f"{plain(store)} answers; experiment {tracking.experiment} {'is there' if found else 'will be made'}"


def _ready(tracking: Tracking, storage: Storage) -> str:
    """The store, with the folder that an SQLite file of our own needs."""
    store = store_of(tracking, storage)
    if tracking.uri is None:
        storage.put("mlflow/README", "The MLflow store of this warehouse: its runs, and what is kept with them.\n")
    return store


def _name(run: str) -> str:
    return f"{PENDING}/{run}.json"
