"""Read a catalog table at one version, so that every pass of a run sees the same rows while others write to it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from pipelines.warehouse.catalog.registry import TABLE_FORMATS


def read_present_version(spark: SparkSession, table: str) -> DataFrame:
    """Read the present version of a table; one of a format without versions as it is."""
    provider = _find_provider(spark, table)
    version = TABLE_FORMATS[provider].find_version(spark, table) if provider in TABLE_FORMATS else None
    if version is None:
        return spark.table(table)
    return spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}")


def _find_provider(spark: SparkSession, table: str) -> str:
    """The format of a table, as Spark describes it; empty for a view."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Provider'").collect()
    return str(rows[-1]["data_type"]).lower() if rows else ""
