"""Denoise: rules that are declared one by one, applied together, and accounted for row by row."""

from pipelines.denoise import rules as _rules  # registers the rules
from pipelines.denoise.registry import RULES

__all__ = ["RULES"]
del _rules
