"""What follows a committed run: the report, Prometheus, tracking. A failure here never undoes the run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from pipelines.config.model import Config
from pipelines.report.settings import ReportSettings, read_report_settings
from pipelines.sharing.tracking.outbox import find_sent
from pipelines.sharing.tracking.protocol import Tracker
from pipelines.warehouse.runs import Manifest, report_path
from pipelines.warehouse.storage import Storage
from schemas.errors import AssayError, ConfigurationError, TrackingError

logger = logging.getLogger(__name__)


@dataclass
class SharedPlaces:
    """Where a run can be seen, by kind; and the error that the command has to end with, if any."""

    places: dict[str, str] = field(default_factory=dict)
    error: AssayError | None = None

    def raise_error(self) -> None:
        """Raise what was required and failed, after everything else is done."""
        if self.error is not None:
            raise self.error


def start_warm_up(config: Config) -> None:
    """Connect to the tracker in the background while Spark works; failures are reported when the run is tracked."""
    from pipelines.sharing.tracking.track import build_tracker

    if not config.tracking.enabled:
        return
    try:
        tracker = build_tracker(Storage(config.warehouse), config.tracking)
    except ConfigurationError:
        return
    threading.Thread(target=_warm_up, args=(tracker,), name="tracker", daemon=True).start()


def _warm_up(tracker: Tracker) -> None:
    try:
        tracker.warm_up()
    except Exception as error:
        logger.debug("the tracker is not ready: %s", error)


def share_run(config: Config, manifest: Manifest, *, reused: bool = False) -> SharedPlaces:
    """Write the report, export figures and track the run, as configured; a failure is logged as a warning.

    Of a run that was `reused`, a report that exists is not written again unless its settings changed, and a run that
    was logged is not logged again.
    """
    storage = Storage(config.warehouse)
    shared = SharedPlaces()
    report = report_path(manifest.dt, manifest.run)
    current = reused and read_report_settings(manifest.config) == config.report
    if config.report.enabled and current and storage.exists(report):
        shared.places["report"] = storage.path(report)
    elif config.report.enabled:
        _try_step(shared, "report", lambda: _write_report(storage, manifest, config.report))
    if config.prometheus.textfile is not None or config.prometheus.pushgateway is not None:
        _try_step(shared, "prometheus", lambda: _export_figures(storage, manifest, config))
    place = find_sent(storage, manifest.run, config.tracking) if reused and config.tracking.enabled else None
    if place is not None:
        shared.places[config.tracking.backend] = place
    elif config.tracking.enabled:
        _track(shared, storage, config, manifest)
    return shared


def _track(shared: SharedPlaces, storage: Storage, config: Config, manifest: Manifest) -> None:
    """Track the run; an outage is a warning, unless tracking is required."""
    from pipelines.sharing.tracking.track import track_run

    try:
        shared.places[config.tracking.backend] = track_run(storage, manifest, config.tracking)
    except ConfigurationError as error:
        logger.info("not tracked: %s", error)
    except TrackingError as error:
        logger.warning("%s", error)
        logger.debug("traceback", exc_info=True)
        shared.error = error if config.tracking.required else None


def _write_report(storage: Storage, manifest: Manifest, settings: ReportSettings) -> str:
    from pipelines.report.render import write_report

    return write_report(storage, manifest, settings)


def _export_figures(storage: Storage, manifest: Manifest, config: Config) -> str:
    from pipelines.sharing.prometheus import export_figures

    return ", ".join(export_figures(storage, manifest, config.prometheus))


def _try_step(shared: SharedPlaces, name: str, step: Callable[[], str]) -> None:
    try:
        shared.places[name] = step()
    except Exception as error:
        logger.warning("the run is published, but its %s failed: %s: %s", name, type(error).__name__, error)
        logger.debug("traceback", exc_info=True)
