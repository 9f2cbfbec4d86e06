"""A rule is one function from its settings to a condition on the features of its level."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.denoise.settings import DenoiseSettings

Level = Literal["user", "user_day", "result", "event", "page", "pair"]

RULES: dict[str, "Rule"] = {}

# Not a rule that one can switch, but what attribution leaves over must be accounted for like everything else.
UNATTRIBUTED = "unattributed"
ORDER = (*DenoiseSettings.model_fields, UNATTRIBUTED)


@dataclass(frozen=True)
class Rule:
    """Its name, the level whose features it may read, and the condition under which a row fails it."""

    name: str
    level: Level
    condition: Callable[[Any], Column]

    @property
    def source(self) -> str:
        return (self.condition.__doc__ or "").strip()


def rule(name: str, level: Level) -> Callable[[Callable[[Any], Column]], Callable[[Any], Column]]:
    """Register a rule. Its settings are the field of the same name in `DenoiseSettings`."""

    def register(condition: Callable[[Any], Column]) -> Callable[[Any], Column]:
        RULES[name] = Rule(name, level, condition)
        return condition

    return register


def bit(name: str) -> int:
    """The rule's place in the bitmask; the lowest bit that is set is the first reason."""
    return 1 << ORDER.index(name)


def first_reason(bits: Column) -> Column:
    """The name of the first rule that a row failed; null for a row that failed none."""
    return F.coalesce(*[F.when(bits.bitwiseAND(bit(name)) != 0, F.lit(name)) for name in ORDER])
