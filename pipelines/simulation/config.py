"""What a simulated log is made of."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from pipelines.section import Section
from schemas.errors import ConfigurationError

PAGES_PER_CLOCKWORK_USER = 20
PAGES_PER_HEAVY_USER = 80
PAGES_PER_HAMMER = 30


class Dirt(Section):
    """How much of each kind of dirt to plant. Shares of pages add pages; shares of clicks add events."""

    crawler: float = Field(0.02, ge=0, lt=1, description="pages by crawlers that name themselves, per clean page")
    clockwork: float = Field(0.01, ge=0, lt=1, description="pages fetched at even intervals, per clean page")
    heavy: float = Field(0.01, ge=0, lt=1, description="pages of users with 80 searches in a day, per clean page")
    staff: float = Field(0.01, ge=0, lt=1, description="pages of staff, per clean page")
    hammer: float = Field(0.003, ge=0, lt=1, description="pages of users who click one product again and again")
    everything: float = Field(0.002, ge=0, lt=1, description="pages where every result is clicked, per clean page")
    sponsored: float = Field(0.2, ge=0, le=1, description="share of queries whose second slot is paid for")
    redelivered: float = Field(0.01, ge=0, lt=1, description="events that arrive twice, per click")
    double_click: float = Field(0.02, ge=0, lt=1, description="clicks repeated within two seconds, per click")
    repeat_click: float = Field(0.02, ge=0, lt=1, description="clicks repeated minutes later, per click")
    late_click: float = Field(0.01, ge=0, lt=1, description="clicks that arrive after half an hour, per click")
    late_purchase: float = Field(0.05, ge=0, lt=1, description="purchases more than a week later, per purchase")
    ghost: float = Field(0.01, ge=0, lt=1, description="clicks on pages that were never shown, per click")
    accidental: float = Field(0.004, ge=0, lt=1, description="short clicks by accident, per result not clicked")

    @classmethod
    def none(cls) -> Self:
        """A clean log."""
        return cls(**dict.fromkeys(cls.model_fields, 0.0))


class SimulationConfig(Section):
    """A log with known truth."""

    seed: int = Field(1, description="the same seed gives the same log, however it is partitioned")
    pages: int = Field(20_000, gt=0, description="clean results pages")
    queries: int = Field(1_000, gt=0, description="queries that people repeat")
    zipf: float = Field(1.0, gt=0, description="how fast traffic falls with the query's rank")
    documents: int = Field(20, gt=1, description="documents that match a query")
    shown: int = Field(10, gt=1, description="results on a page")
    days: int = Field(7, gt=0, description="days of log")
    drift: float = Field(0.0, ge=0, le=1, description="share of a ranker's noise that is drawn anew every day")
    qualities: dict[str, float] = Field(
        {"production": 0.5, "older": 0.25, "trial": 0.7, "better": 0.81, "equal": 0.5, "worse": 0.345},
        description="systems: how much the true grade counts against noise in their scores",
    )
    traffic: dict[str, float] = Field(
        {"production": 0.85, "older": 0.10, "trial": 0.05}, description="share of the pages that a system serves"
    )
    start: str = Field("2026-01-05", description="first day of the log")
    pages_per_user: float = Field(4, gt=0, description="pages per clean user over the whole log")
    examination: dict[str, float] = Field(
        {"desktop": 1.0}, description="η by device: a result at place k is looked at with probability (1/k)^η"
    )
    trust: float = Field(0.0, ge=0, lt=1, description="chance that a place-1 result is clicked for its place (τ/k)")
    grade_shares: tuple[float, float, float, float] = Field(
        (0.55, 0.22, 0.14, 0.09), description="share of the documents with true grade 0, 1, 2, 3"
    )
    attraction: tuple[float, float, float, float] = Field(
        (0.04, 0.12, 0.30, 0.55), description="chance of a click on an examined result, by true grade"
    )
    cart_rates: tuple[float, float, float, float] = Field(
        (0.01, 0.05, 0.12, 0.25), description="chance of a cart after a click, by true grade"
    )
    purchase_rate: float = Field(0.4, ge=0, le=1, description="chance of a purchase after a cart")
    page_known: float = Field(0.2, ge=0, le=1, description="share of carts and purchases that carry their page")
    dirt: Dirt = Field(Dirt(), description="what is planted for the denoise rules to find")

    @model_validator(mode="after")
    def _check(self) -> Self:
        unknown = set(self.traffic) - set(self.qualities)
        if unknown:
            raise ValueError(f"traffic names systems without a quality: {', '.join(sorted(unknown))}")
        if abs(sum(self.traffic.values()) - 1) > 1e-9 or abs(sum(self.grade_shares) - 1) > 1e-9:
            raise ValueError("shares must sum to 1: traffic and grade_shares")
        if self.shown > self.documents:
            raise ValueError("shown must not be larger than documents")
        return self


def simulation_from(given: Mapping[str, Any], overrides: Sequence[str]) -> SimulationConfig:
    """A configuration from what a command was told: named values, then `key=value` texts such as dirt.crawler=0."""
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for text in overrides:
        path, found, value = text.partition("=")
        if not found:
            raise ConfigurationError(f"{text!r} sets nothing", hint="write it as key=value")
        *parents, name = path.split(".")
        inner = values
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = yaml.safe_load(value)
    try:
        return SimulationConfig(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(first["msg"], where=where, hint="see docs/labels.md") from None
