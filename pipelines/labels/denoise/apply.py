"""Apply all rules of a level at once."""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.labels.denoise.registry import RULES, Level, rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings


def combine_rules(level: Level, settings: DenoiseSettings) -> Column:
    """The bits of all enabled rules of a level that drop a row."""
    bits = []
    for rule in RULES.values():
        rule_settings = getattr(settings, rule.name)
        if rule.level == level and rule_settings.enabled:
            dropped = F.coalesce(rule.condition(rule_settings), F.lit(False))
            bits.append(F.when(dropped, F.lit(rule_bit(rule.name))).otherwise(F.lit(0)))
    return reduce(lambda left, right: left.bitwiseOR(right), bits, F.lit(0))
