"""Apply all rules of a level at once: as columns of Spark for single results, as arrays for all else."""

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.labels.denoise.registry import RULES, Arrays, Columns, Level, rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings
from udfs.ragged import Ints


class ColumnFeatures(Mapping[str, Column]):
    """The columns of a table as the features of its rows."""

    def __getitem__(self, name: str) -> Column:
        return F.col(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def combine_columns(level: Level, settings: DenoiseSettings) -> Column:
    """The bits of all enabled rules of a level that drop a row, as a column."""
    bits = (
        F.when(F.coalesce(dropped, F.lit(False)), F.lit(bit)).otherwise(F.lit(0))
        for bit, dropped in _apply_rules(level, settings, ColumnFeatures())
    )
    return reduce(lambda left, right: left.bitwiseOR(right), bits, F.lit(0))


def combine_arrays(level: Level, settings: DenoiseSettings, features: Arrays, rows: int) -> Ints:
    """The bits of all enabled rules of a level that drop a row, as an array."""
    bits = np.zeros(rows, dtype=np.int64)
    for bit, dropped in _apply_rules(level, settings, features):
        bits |= np.where(dropped, bit, 0)
    return bits


def _apply_rules(level: Level, settings: DenoiseSettings, features: Arrays | Columns) -> Iterator[tuple[int, Any]]:
    """The bit and the condition of each enabled rule of a level."""
    for rule in RULES.values():
        rule_settings = getattr(settings, rule.name)
        if rule.level == level and rule_settings.enabled:
            yield rule_bit(rule.name), rule.condition(rule_settings, features)
