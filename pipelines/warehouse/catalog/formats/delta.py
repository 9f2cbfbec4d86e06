"""Delta Lake tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.warehouse.catalog.registry import TableFormat, register_table_format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_delta_version(spark: SparkSession, table: str) -> str | None:
    """The number of the newest version."""
    newest = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()
    return None if newest is None else str(newest["version"])


register_table_format(TableFormat("delta", find_delta_version))
