"""Read catalog tables: the newest run of every date, of one date, or one run."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.warehouse.runs import RUNS
from schemas.errors import InputError


def read_catalog_table(
    spark: SparkSession, namespace: str, name: str, *, date: str | None = None, run: str | None = None
) -> DataFrame:
    """Read a table with its `dt` and `run`; runs without the table are ignored.

    The runs are chosen before the table is read, so all of their rows are there, whatever is published meanwhile.
    """
    runs = spark.table(f"{namespace}.{RUNS}").where(F.array_contains("tables", name))
    if date is not None:
        runs = runs.where(F.col("dt") == F.lit(date).cast("date"))
    if run is not None:
        runs = runs.where(F.col("run") == run)
    newest = runs.groupBy("dt").agg(F.max_by("run", F.struct("committed_at", "run")).alias("run")).collect()
    if not newest:
        what = f"run {run}" if run else f"run of {date}" if date else "run"
        raise InputError(f"no {what} has the table {name}", where=namespace, hint="its table runs lists the runs")
    return spark.table(f"{namespace}.{name}").where(F.col("run").isin([row["run"] for row in newest]))
