"""Apply all rules of a level at once."""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.denoise import rules  # importing the rules registers them
from pipelines.denoise.registry import RULES, Level, bit
from pipelines.denoise.settings import DenoiseSettings

assert rules


def failed(level: Level, settings: DenoiseSettings) -> Column:
    """The bits of all enabled rules of a level that a row fails."""
    active = [r for r in RULES.values() if r.level == level and getattr(settings, r.name).enabled]
    flags = [
        F.when(F.coalesce(r.condition(getattr(settings, r.name)), F.lit(False)), F.lit(bit(r.name))).otherwise(F.lit(0))
        for r in active
    ]
    return reduce(lambda left, right: left.bitwiseOR(right), flags, F.lit(0))
