"""What the numbers mean, in words: each reading is one registered rule, with the figures that fired it.

A rule is a function of the evidence about one pair of systems that answers a sentence, or None:

    @reading
    def low_power(pair: Pair) -> str | None:
        \"\"\"When it fires, and why that matters.\"\"\"
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from pipelines.readings.rules import RULES, Evidence, Pair, Reading, reading, said_once

__all__ = ["Evidence", "Pair", "Reading", "read_all", "reading", "said_once"]


def read_all(evidence: Evidence) -> Iterator[Reading]:
    """Every reading that fires, pair by pair."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    for pair in evidence.pairs():
        for name, rule in sorted(RULES.items()):
            text = rule(pair)
            if text is not None:
                yield Reading(name, pair.baseline, pair.candidate, text)
