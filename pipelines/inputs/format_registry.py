"""The registry of source formats, by the name that `inputs.<table>.format` takes.

A format is a function from a session, the paths and the reader's options to a DataFrame. It validates nothing: a line
that cannot be parsed arrives as `_corrupt_record`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from schemas.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Reader = Callable[[SparkSession, Sequence[str], Mapping[str, str]], DataFrame]

FORMATS: Registry[Reader] = Registry("format", "pipelines.inputs.formats")


def source_format(name: str) -> Callable[[Reader], Reader]:
    """Register the decorated reader as `name`."""

    def register(reader: Reader) -> Reader:
        return FORMATS.register(name, reader)

    return register
