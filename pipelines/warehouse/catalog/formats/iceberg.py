"""Apache Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.warehouse.catalog.registry import TableFormat, register_table_format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_iceberg_version(spark: SparkSession, table: str) -> str | None:
    """The id of the present snapshot."""
    rows = spark.sql(f"SHOW TBLPROPERTIES {table}").collect()
    version = {row["key"]: row["value"] for row in rows}.get("current-snapshot-id", "none")
    return None if version == "none" else str(version)


# A run is one partition: distributing rows by partition would write it in one task.
register_table_format(TableFormat("iceberg", find_iceberg_version, {"write.distribution-mode": "none"}))
