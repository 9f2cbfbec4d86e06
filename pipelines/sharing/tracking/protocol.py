"""What is sent to a tracker, and what a tracker has to do with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Protocol

from pydantic import BaseModel, ConfigDict


class TrackedRun(BaseModel):
    """One run of the tracker: the evaluation itself, or one of its systems."""

    model_config = ConfigDict(frozen=True)

    name: str
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    params: Mapping[str, str] = {}


class Payload(BaseModel):
    """Everything that is sent about one evaluation. Files are named here and read when it is sent."""

    model_config = ConfigDict(frozen=True)

    run: str
    key: str  # of the work: the same for a run that is sent again or was forced
    dt: str
    experiment: str
    started: int  # milliseconds
    ended: int
    parent: TrackedRun
    systems: tuple[TrackedRun, ...]
    inputs: tuple[Mapping[str, str], ...]
    files: Mapping[str, str]  # name of an artifact -> name in the warehouse

    @property
    def timestamp(self) -> int:
        """Midnight of the date in milliseconds: metrics are logged with it, so that charts run over days."""
        return self.step * 86_400_000

    @property
    def step(self) -> int:
        """The date as days since 1970."""
        return (dt.date.fromisoformat(self.dt) - dt.date(1970, 1, 1)).days


class Tracker(Protocol):
    """A tracking backend, built from its settings and the warehouse.

    Its constructor raises `ConfigurationError` where the settings do not suffice, and does no slow work. Any exception
    of the methods means that the tracker could not be reached.
    """

    def send(self, payload: Payload) -> str:
        """Log a run and return where it can be found. Idempotent: the same payload sent twice is one run."""
        ...

    def check(self) -> str:
        """Connect, and describe what answered."""
        ...

    def warm_up(self) -> None:
        """Do the slow part of connecting while Spark is still at work."""
        ...
