"""What follows a published run: the report, MLflow, Prometheus. The data is safe; none of it may undo that."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from pipelines.config import Config
from pipelines.runs import Manifest
from pipelines.storage import Storage
from schemas.errors import AssayError

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


def share(config: Config, manifest: Manifest) -> Shared:
    """Tell of a run everywhere that is configured; what cannot be told is warned of."""
    storage = Storage(config.warehouse)
    shared = Shared()
    if config.report:
        _try(shared, "report", lambda: _report(storage, manifest))
    return shared


def _report(storage: Storage, manifest: Manifest) -> str:
    from pipelines.report import write_report

    return write_report(storage, manifest)


def _try(shared: Shared, name: str, tell: Callable[[], str]) -> None:
    try:
        shared.places[name] = tell()
    except Exception as error:
        logger.warning("the run is published, but not its %s: %s: %s", name, type(error).__name__, error)
        logger.debug("what led to it", exc_info=True)
