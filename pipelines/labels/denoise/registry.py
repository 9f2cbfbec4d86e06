"""A denoise rule is one function from its settings and the features of its level to a condition.

Features are NumPy arrays with one value per row, NaN where there is none, and texts (`columns.Texts`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt
from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.labels.denoise.settings import DenoiseSettings
from schemas.registry import Registry
from udfs.ragged import Bools

Level = Literal["user", "user_day", "result", "impression", "event", "page", "pair"]
Arrays = Mapping[str, npt.NDArray[Any]]
Features = Mapping[str, Any]  # arrays, and of single results texts
Condition = Callable[[Any, Any], Bools]  # from the settings and the features

# Not a rule that can be switched off, but events without a page must be counted like all others.
UNATTRIBUTED = "unattributed"
ORDER = (*DenoiseSettings.model_fields, UNATTRIBUTED)


@dataclass(frozen=True)
class DenoiseRule:
    """Its name, the level whose features it may read, and the condition under which a row is dropped."""

    name: str
    level: Level
    condition: Condition


RULES: Registry[DenoiseRule] = Registry("denoise rule", "pipelines.labels.denoise.rules")


def rule(name: str, level: Level) -> Callable[[Condition], Condition]:
    """Register a rule. Its settings are the field of the same name in `DenoiseSettings`."""

    def register(condition: Condition) -> Condition:
        RULES.register(name, DenoiseRule(name, level, condition))
        return condition

    return register


def rule_bit(name: str) -> int:
    """The bit of a rule in the mask `bits`; the lowest bit that is set is the first reason."""
    return 1 << ORDER.index(name)


def name_first_rule(bits: Column) -> Column:
    """The name of the first rule that dropped a row; null for a row that is kept."""
    return F.coalesce(*[F.when(bits.bitwiseAND(rule_bit(name)) != 0, F.lit(name)) for name in ORDER])
