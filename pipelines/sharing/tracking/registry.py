"""The tracking backends by name, as `tracking.backend` names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from schemas.registry import Registry

if TYPE_CHECKING:
    from pipelines.sharing.settings import TrackingSettings
    from pipelines.sharing.tracking.protocol import Tracker
    from pipelines.warehouse.storage import Storage

TRACKERS: Registry[Callable[[TrackingSettings, Storage], Tracker]] = Registry(
    "tracking backend", "pipelines.sharing.tracking.backends"
)
