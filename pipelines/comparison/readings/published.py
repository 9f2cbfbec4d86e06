"""Readings as a manifest has them. Nothing heavy is imported here: commands print them without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def merge_equal_readings(readings: Sequence[Mapping[str, Any]]) -> list[tuple[list[str], str, str]]:
    """Candidates, baseline and text of published readings; a text that holds for several candidates comes once."""
    candidates: dict[tuple[str, str], list[str]] = {}
    for entry in readings:
        candidates.setdefault((entry["baseline"], entry["text"]), []).append(entry["candidate"])
    return [(names, baseline, text) for (baseline, text), names in candidates.items()]
