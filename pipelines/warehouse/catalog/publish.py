"""Copy a committed run into the tables of a catalog: one transaction for each, `runs` last."""

from __future__ import annotations

import datetime as dt
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.warehouse.catalog.registry import TABLE_FORMATS
from pipelines.warehouse.catalog.settings import OutputSettings
from pipelines.warehouse.catalog.write import write_run
from pipelines.warehouse.literal_paths import open_reader
from pipelines.warehouse.runs import RUNS, Manifest
from pipelines.warehouse.storage import Storage
from schemas.errors import PublishError
from schemas.spark_errors import describe_spark_error

RUNS_DDL = (
    "committed_at timestamp, configuration string, gate string, tables array<string>, manifest string"  # and dt, run
)
_WORST_FIRST = ("fail", "undecidable", "pass")


def publish_to_catalog(spark: SparkSession, storage: Storage, manifest: Manifest, output: OutputSettings) -> None:
    """Copy a run to `output.namespace`, unless it is there; without a namespace, nothing is done."""
    if output.namespace is None or _is_listed(spark, output.namespace, manifest):
        return
    table_format = TABLE_FORMATS[output.format]
    for name, record in manifest.tables.items():
        read = partial(open_reader(spark).parquet, storage.path(record.path))
        write_run(table_format, f"{output.namespace}.{name}", read, manifest.dt, manifest.run)
    describe = partial(_describe, spark, manifest)
    write_run(table_format, f"{output.namespace}.{RUNS}", describe, manifest.dt, manifest.run)


def _is_listed(spark: SparkSession, namespace: str, manifest: Manifest) -> bool:
    """Whether `runs` has the run; creates the namespace, if it is missing."""
    try:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        if not spark.catalog.tableExists(f"{namespace}.{RUNS}"):
            return False
        return not spark.table(f"{namespace}.{RUNS}").where(F.col("run") == manifest.run).isEmpty()
    except Exception as error:
        raise PublishError(
            f"cannot use the catalog: {describe_spark_error(error)[1]}",
            where=f"output.namespace: {namespace}",
            hint="spark.settings must configure the catalog and its runtime (spark.jars or spark.jars.packages)",
        ) from error


def _describe(spark: SparkSession, manifest: Manifest) -> DataFrame:
    verdicts = [condition.get("verdict") for condition in manifest.gate]
    row = (
        dt.datetime.fromisoformat(manifest.committed_at),
        manifest.config_hash,
        next((verdict for verdict in _WORST_FIRST if verdict in verdicts), None),
        sorted(manifest.tables),
        manifest.model_dump_json(),
    )
    return spark.createDataFrame([row], RUNS_DDL)
