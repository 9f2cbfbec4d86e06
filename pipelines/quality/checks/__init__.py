"""The checks beyond single rows, one file each; a file that is put here is found."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from pipelines.quality.registry import CHECKS, Check


@cache
def checks() -> Mapping[str, Check]:
    """All checks by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(CHECKS.items()))
