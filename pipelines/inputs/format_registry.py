"""Source formats: one file each, registered under the name that `inputs.<table>.format` takes.

A format is a function from a session, the paths and the reader's options to a DataFrame. It reads what
is there and judges nothing: a line that cannot be parsed arrives as `_corrupt_record`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Reader = Callable[[SparkSession, Sequence[str], Mapping[str, str]], DataFrame]

_FORMATS: dict[str, Reader] = {}


def source_format(name: str) -> Callable[[Reader], Reader]:
    """Register the decorated reader as `name`."""

    def register(reader: Reader) -> Reader:
        _FORMATS[name] = reader
        return reader

    return register


@cache
def formats() -> Mapping[str, Reader]:
    """All formats by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(_FORMATS.items()))
