"""The registry of gate conditions, and what each kind declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from schemas.registry import Registry
from udfs.statistics.plan import Row


@dataclass(frozen=True)
class Bound:
    """The estimate whose lower confidence bound must exceed `edge`; None where it is undefined."""

    measure: str
    value: float | None
    stderr: float | None
    edge: float


@dataclass(frozen=True)
class ConditionKind:
    """One kind of condition: its configuration key, its words and its bound, each from the configured limit.

    One that needs no baseline is met where the bound reaches the edge; the others must exceed it. `limits` are those
    of pydantic's `Field` (ge, lt, …); a `default` of None or False means not set.
    """

    key: str
    type: Any
    default: Any
    description: str
    needs_baseline: bool
    describe: Callable[[Any], str]
    bound: Callable[[Row, Any], Bound]
    limits: dict[str, float] = field(default_factory=dict)


CONDITIONS: Registry[ConditionKind] = Registry("gate condition", "pipelines.comparison.conditions")


def register_condition(kind: ConditionKind) -> ConditionKind:
    """Register a kind under its configuration key."""
    return CONDITIONS.register(kind.key, kind)


def list_conditions() -> list[ConditionKind]:
    """All kinds in the order of the documentation: those that need a baseline first."""
    return sorted(CONDITIONS.values(), key=lambda kind: not kind.needs_baseline)
