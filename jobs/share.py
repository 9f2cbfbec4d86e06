"""What follows a published run: the report, MLflow, Prometheus. The data is safe; none of it may undo that."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from pipelines.config import Config
from pipelines.config_sharing import Tracking
from pipelines.runs import Manifest
from pipelines.storage import Storage
from schemas.errors import AssayError, TrackingError

logger = logging.getLogger(__name__)


@dataclass
class Shared:
    """Where a run can be looked at, and what must still be answered for."""

    places: dict[str, str] = field(default_factory=dict)
    failed: AssayError | None = None

    def settle(self) -> None:
        """Raise what was required and did not work, once everything else is said and done."""
        if self.failed is not None:
            raise self.failed


def prepare(config: Config) -> None:
    """Begin what takes time and can be done while Spark works; it is only ever a head start."""
    storage = Storage(config.warehouse)
    if config.tracking.enabled and (config.tracking.uri or storage.uri.startswith("file://")):
        threading.Thread(target=_warm, args=(storage, config.tracking), name="mlflow", daemon=True).start()


def _warm(storage: Storage, tracking: Tracking) -> None:
    from pipelines.track import warm

    try:
        warm(storage, tracking)
    except Exception as error:  # told in full when the run is to be tracked
        logger.debug("MLflow is not ready: %s", error)


def share(config: Config, manifest: Manifest) -> Shared:
    """Tell of a run everywhere that is configured; what cannot be told is warned of."""
    storage = Storage(config.warehouse)
    shared = Shared()
    if config.report:
        _try(shared, "report", lambda: _report(storage, manifest))
    if config.prometheus.textfile is not None or config.prometheus.pushgateway is not None:
        _try(shared, "prometheus", lambda: _export(storage, manifest, config))
    if config.tracking.enabled:
        _track(shared, storage, config, manifest)
    return shared


def _track(shared: Shared, storage: Storage, config: Config, manifest: Manifest) -> None:
    """MLflow, last of all; an outage is a warning, unless tracking is required."""
    from pipelines.track import track

    if config.tracking.uri is None and not storage.uri.startswith("file://"):
        logger.info("not tracked: tracking.uri is not set, and a remote warehouse has no place for SQLite")
        return
    try:
        shared.places["mlflow"] = track(storage, manifest, config.tracking)
    except TrackingError as error:
        logger.warning("%s", error)
        logger.debug("what led to it", exc_info=True)
        shared.failed = error if config.tracking.required else None


def _report(storage: Storage, manifest: Manifest) -> str:
    from pipelines.report import write_report

    return write_report(storage, manifest)


def _export(storage: Storage, manifest: Manifest, config: Config) -> str:
    from pipelines.export import export

    return ", ".join(export(storage, manifest, config.prometheus))


def _try(shared: Shared, name: str, tell: Callable[[], str]) -> None:
    try:
        shared.places[name] = tell()
    except Exception as error:
        logger.warning("the run is published, but not its %s: %s: %s", name, type(error).__name__, error)
        logger.debug("what led to it", exc_info=True)
