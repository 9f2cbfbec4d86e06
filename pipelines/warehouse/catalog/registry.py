"""The registry of table formats, by the name that `output.format` takes and that `CREATE TABLE … USING` has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schemas.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class TableFormat:
    """What differs between formats: the properties of new tables, and how the present version of one is found."""

    name: str
    find_version: Callable[[SparkSession, str], str | None]  # for `VERSION AS OF`; None for a table without data
    properties: Mapping[str, str] = field(default_factory=dict)


TABLE_FORMATS: Registry[TableFormat] = Registry("table format", "pipelines.warehouse.catalog.formats")


def register_table_format(table_format: TableFormat) -> None:
    """Register a format under its name."""
    TABLE_FORMATS.register(table_format.name, table_format)
