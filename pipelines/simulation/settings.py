"""Settings of a simulated log."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Self

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from schemas.dates import parse_date
from schemas.errors import ConfigurationError
from schemas.problems import describe_problem
from schemas.section import Section

PAGES_PER_CLOCKWORK_USER = 20
PAGES_PER_HEAVY_USER = 80
PAGES_PER_HAMMER = 30


class DirtSettings(Section):
    """How much noise of each kind to plant. Shares of pages add pages; shares of clicks add events."""

    crawler: float = Field(0.02, ge=0, lt=1, description="Pages of crawlers with their own user agent, per clean page.")
    clockwork: float = Field(0.01, ge=0, lt=1, description="Pages fetched at even intervals, per clean page.")
    heavy: float = Field(0.01, ge=0, lt=1, description="Pages of users with 80 searches in a day, per clean page.")
    staff: float = Field(0.01, ge=0, lt=1, description="Pages of staff, per clean page.")
    hammer: float = Field(0.003, ge=0, lt=1, description="Pages of users who click one product repeatedly.")
    everything: float = Field(0.002, ge=0, lt=1, description="Pages with every result clicked, per clean page.")
    sponsored: float = Field(0.2, ge=0, le=1, description="Share of queries whose second slot is sponsored.")
    redelivered: float = Field(0.01, ge=0, lt=1, description="Events delivered twice, per click.")
    double_click: float = Field(0.02, ge=0, lt=1, description="Clicks repeated within two seconds, per click.")
    repeat_click: float = Field(0.02, ge=0, lt=1, description="Clicks repeated minutes later, per click.")
    late_click: float = Field(0.01, ge=0, lt=1, description="Clicks half an hour after their page or later, per click.")
    late_purchase: float = Field(
        0.05, ge=0, lt=1, description="Purchases a week after their click or later, per purchase."
    )
    ghost: float = Field(0.01, ge=0, lt=1, description="Clicks on pages that were not shown, per click.")
    accidental: float = Field(0.004, ge=0, lt=1, description="Short accidental clicks, per result without a click.")

    @classmethod
    def none(cls) -> Self:
        """Settings of a log without noise."""
        return cls(**dict.fromkeys(cls.model_fields, 0.0))


class SimulationSettings(Section):
    """A simulated log."""

    seed: int = Field(
        1, ge=-(2**63), lt=2**63, description="Seed; the same seed gives the same log, however it is partitioned."
    )
    pages: int = Field(20_000, gt=0, description="Results pages of people, without noise.")
    queries: int = Field(1_000, gt=0, description="Distinct queries.")
    zipf: float = Field(1.0, gt=0, description="Exponent of the Zipf distribution of traffic over queries.")
    documents: int = Field(20, gt=1, description="Documents that match a query.")
    shown: int = Field(10, gt=1, description="Results on a page.")
    days: int = Field(7, gt=0, description="Days of the log.")
    drift: float = Field(0.0, ge=0, le=1, description="Share of a ranker's noise that changes every day.")
    qualities: dict[str, float] = Field(
        {"production": 0.5, "older": 0.25, "trial": 0.7, "better": 0.81, "equal": 0.5, "worse": 0.345},
        description="Weight of the true grade against noise in the scores of each system.",
    )
    traffic: dict[str, float] = Field(
        {"production": 0.85, "older": 0.10, "trial": 0.05}, description="Share of the pages that a system serves."
    )
    start: str = Field("2026-01-05", description="First day of the log.")
    pages_per_user: float = Field(4, gt=0, description="Pages per user over the whole log.")
    examination: dict[str, float] = Field(
        {"desktop": 1.0}, description="η by device: position k is examined with probability (1/k)^η."
    )
    trust: float = Field(0.0, ge=0, lt=1, description="τ: probability τ/k of a click from trust alone at position k.")
    grade_shares: tuple[float, float, float, float] = Field(
        (0.55, 0.22, 0.14, 0.09), description="Share of the documents with true grade 0, 1, 2, 3."
    )
    attraction: tuple[float, float, float, float] = Field(
        (0.04, 0.12, 0.30, 0.55), description="Probability of a click on an examined result, by true grade."
    )
    cart_rates: tuple[float, float, float, float] = Field(
        (0.01, 0.05, 0.12, 0.25), description="Probability of a cart after a click, by true grade."
    )
    purchase_rate: float = Field(0.4, ge=0, le=1, description="Probability of a purchase after a cart.")
    page_known: float = Field(0.2, ge=0, le=1, description="Share of carts and purchases with the id of their page.")
    dirt: DirtSettings = Field(DirtSettings(), description="Noise planted for the denoise rules.")

    @field_validator("start", mode="before")
    @classmethod
    def _check_start(cls, start: object) -> str:
        """Text or, as YAML reads it, a date."""
        return parse_date(start.isoformat() if isinstance(start, dt.date) else str(start)).isoformat()

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        unknown = set(self.traffic) - set(self.qualities)
        if unknown:
            raise ValueError(f"traffic names systems without a quality: {', '.join(sorted(unknown))}")
        if abs(sum(self.traffic.values()) - 1) > 1e-9 or abs(sum(self.grade_shares) - 1) > 1e-9:
            raise ValueError("shares must sum to 1: traffic and grade_shares")
        if self.shown > self.documents:
            raise ValueError("shown must not be larger than documents")
        return self


def build_simulation_settings(options: Mapping[str, Any], overrides: Sequence[str]) -> SimulationSettings:
    """Settings from named options (None for the default), then from overrides such as dirt.crawler=0."""
    values: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for text in overrides:
        path, equals, value = text.partition("=")
        if not equals:
            raise ConfigurationError(f"{text!r} sets nothing", hint="write it as key=value")
        *parents, name = path.split(".")
        section = values
        for parent in parents:
            section = section.setdefault(parent, {})
            if not isinstance(section, dict):
                raise ConfigurationError(f"{text!r} sets a key of {parent}, which is set to a value", where=path)
        try:
            section[name] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError):
            raise ConfigurationError(f"cannot read the value of {text!r}", where=path) from None
    try:
        return SimulationSettings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(describe_problem(first), where=where, hint="see docs/labels.md") from None
