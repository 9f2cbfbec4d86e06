"""The registry of source formats, by the name that `inputs.<table>.format` takes.

A reader is a function from a session, the paths and the options to a DataFrame. It validates nothing: a line that
cannot be parsed arrives as `_corrupt_record`, and a row that is not for this table has the reason in `_ignored`, to
be counted. Where a system may be in one file only, `_file` has the file of each row. A general format reads every table
in one way; a preset has a reader for each table that it gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schemas.errors import did_you_mean
from schemas.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Reader = Callable[[SparkSession, Sequence[str], Mapping[str, str]], DataFrame]


@dataclass(frozen=True)
class SourceFormat:
    """How the files of a format are read: in one way, or with a reader for each table, and the options it takes."""

    name: str
    read: Reader | None = None
    readers: Mapping[str, Reader] | None = None  # of a preset, by table
    options: Mapping[str, str] | None = (
        None  # name -> pattern of its values; None where they are those of Spark's reader
    )

    def find_reader(self, table: str) -> Reader:
        """The reader for a table; raises `ValueError` where the format does not give it."""
        reader = self.read or (self.readers or {}).get(table)
        if reader is None:
            raise ValueError(f"the format {self.name} gives {', '.join(self.readers or {})}, not {table}")
        return reader

    def check_options(self, options: Mapping[str, str]) -> None:
        """Refuse an option that the format does not take, or a value that the option does not."""
        if self.options is None:
            return
        for name, value in options.items():
            if name not in self.options:
                raise ValueError(f"the format {self.name} has no option {name!r}: {did_you_mean(name, self.options)}")
            if re.fullmatch(self.options[name], value) is None:
                raise ValueError(f"the option {name} of {self.name} is {value!r}: it must match {self.options[name]}")


FORMATS: Registry[SourceFormat] = Registry("format", "pipelines.inputs.formats")


def source_format(name: str, options: Mapping[str, str] | None = None) -> Callable[[Reader], Reader]:
    """Register the decorated reader as the general format `name`; `options` has the patterns of those it takes."""

    def register(reader: Reader) -> Reader:
        FORMATS.register(name, SourceFormat(name, read=reader, options=options))
        return reader

    return register


def register_preset(name: str, readers: Mapping[str, Reader], options: Mapping[str, str]) -> None:
    """Register the readers of a preset, one for each table that it gives, and the patterns of its options."""
    FORMATS.register(name, SourceFormat(name, readers=readers, options=options))
