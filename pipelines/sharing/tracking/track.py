"""Log a run with the configured tracker; where it cannot be reached, keep the payload in the outbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.sharing.deadline import call_within
from pipelines.sharing.settings import TrackingSettings
from pipelines.sharing.tracking.outbox import drop_payload, keep_payload, list_pending, record_sent
from pipelines.sharing.tracking.payload import build_payload
from pipelines.sharing.tracking.protocol import Payload, Tracker
from pipelines.sharing.tracking.registry import TRACKERS
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from schemas.errors import TrackingError


def build_tracker(storage: Storage, settings: TrackingSettings) -> Tracker:
    """The tracker that `tracking.backend` names."""
    return TRACKERS.require(settings.backend, where="tracking.backend")(settings, storage)


def track_run(storage: Storage, manifest: Manifest, settings: TrackingSettings) -> str:
    """Log a run and return where it can be found; keep the payload and raise where the tracker cannot be reached."""
    payload = build_payload(storage, manifest, settings.experiment)
    try:
        return _send(storage, payload, settings)
    except TrackingError:
        keep_payload(storage, payload)
        raise


def send_pending(storage: Storage, settings: TrackingSettings) -> dict[str, str]:
    """Send every payload of the outbox, oldest date first; the place of each run by its id."""
    return {payload.run: _send(storage, payload, settings) for payload in list_pending(storage)}


def check_connection(storage: Storage, settings: TrackingSettings) -> str:
    """Connect to the tracker, and describe what answered."""
    tracker = build_tracker(storage, settings)
    with _raise_tracking_errors(settings):
        return call_within(settings.seconds, tracker.check)


def _send(storage: Storage, payload: Payload, settings: TrackingSettings) -> str:
    tracker = build_tracker(storage, settings)
    with _raise_tracking_errors(settings):
        if settings.uri is None:
            tracker.warm_up()  # the tables of a new store in the warehouse take their time, and no server
        place = call_within(settings.seconds, lambda: tracker.send(payload))
    drop_payload(storage, payload)
    record_sent(storage, payload.run, settings, place)
    return place


@contextmanager
def _raise_tracking_errors(settings: TrackingSettings) -> Iterator[None]:
    """Turn whatever goes wrong inside a tracker into one kind of error."""
    try:
        yield
    except Exception as error:
        message = " ".join(str(error).split())[:300]
        raise TrackingError(
            f"{settings.backend} could not be reached: {type(error).__name__}: {message}",
            where=settings.uri or "the store in the warehouse",
            hint="the run is published; `assay track --pending` sends it later",
        ) from error
