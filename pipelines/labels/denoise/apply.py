"""Apply all rules of a level at once."""

import numpy as np

from pipelines.labels.denoise.registry import RULES, Features, Level, rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings
from udfs.ragged import Ints


def combine_arrays(level: Level, settings: DenoiseSettings, features: Features, rows: int) -> Ints:
    """The bits of all enabled rules of a level that drop a row."""
    bits = np.zeros(rows, dtype=np.int64)
    for rule in RULES.values():
        rule_settings = getattr(settings, rule.name)
        if rule.level == level and rule_settings.enabled:
            bits |= np.where(rule.condition(rule_settings, features), rule_bit(rule.name), 0)
    return bits
