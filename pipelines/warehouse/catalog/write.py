"""Write a run's rows to a catalog table in one transaction; the table is created, and gets new columns, as needed."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.warehouse.catalog.registry import TableFormat
from schemas.errors import PublishError
from schemas.spark_errors import describe_spark_error

logger = logging.getLogger(__name__)

PARTITION = ("dt", "run")
ATTEMPTS = 6  # another publisher may change the table between planning and commit
FIRST_WAIT = 0.5  # seconds; doubled after each attempt


def write_run(table_format: TableFormat, table: str, read: Callable[[], DataFrame], date: str, run: str) -> None:
    """Replace the rows of a run in a table by those that `read` gives.

    It is repeated after a conflict, and where the outcome is not known: the rows of one run replace only each other, so
    repeating a write that did succeed changes nothing.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            rows = read().drop(*PARTITION)
            rows = rows.select("*", F.lit(date).cast("date").alias("dt"), F.lit(run).alias("run"))
            _write_once(table_format, table, rows, date, run)
            return
        except Exception as error:
            reason = describe_spark_error(error)[1]
            if attempt == ATTEMPTS:
                raise PublishError(
                    f"cannot write to the catalog table: {reason}",
                    where=table,
                    hint=f"run {run} is committed in the warehouse; readers of the catalog still see the former run. "
                    "Run the same command again to finish it",
                ) from error
            logger.debug("attempt %d to write %s: %s", attempt, table, reason)
            time.sleep(FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1))


def _write_once(table_format: TableFormat, table: str, rows: DataFrame, date: str, run: str) -> None:
    spark: SparkSession = rows.sparkSession
    _create_table(spark, table_format, table, rows)
    _add_columns(spark, table, rows)
    columns = [
        F.col(f"`{field.name}`") if field.name in rows.columns else F.lit(None).cast(field.dataType).alias(field.name)
        for field in spark.table(table).schema
    ]
    part = (F.col("dt") == F.lit(date).cast("date")) & (F.col("run") == F.lit(run))
    rows.select(*columns).writeTo(table).overwrite(part)


def _create_table(spark: SparkSession, table_format: TableFormat, table: str, rows: DataFrame) -> None:
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in table_format.properties.items())
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {table} ({_declare(rows, rows.columns)}) USING {table_format.name} "
        f"PARTITIONED BY ({', '.join(PARTITION)})" + (f" TBLPROPERTIES ({properties})" if properties else "")
    )


def _add_columns(spark: SparkSession, table: str, rows: DataFrame) -> None:
    """Add the columns that the table lacks, such as those of new metrics; earlier runs have nulls there."""
    present = set(spark.table(table).columns)
    missing = [name for name in rows.columns if name not in present]
    if missing:
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({_declare(rows, missing)})")


def _declare(rows: DataFrame, names: list[str]) -> str:
    return ", ".join(f"`{name}` {rows.schema[name].dataType.simpleString()}" for name in names)
