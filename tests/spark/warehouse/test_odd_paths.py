"""A warehouse may have any name that the file system allows."""

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables, read_table
from pipelines.warehouse.views import render_spark_views

FACTS = {"seconds": {}, "config": {}, "config_hash": "", "code": "", "spark": "", "inputs": {}, "systems": ()}


@pytest.mark.parametrize("name", ["a [b] 'c' \"d\"", "a\\b{c,d}*?"])
def test_tables_are_written_read_and_viewed_under_any_name(spark: SparkSession, tmp_path: Path, name: str) -> None:
    warehouse = str(tmp_path / name)
    with Attempt(Storage(warehouse), dt.date(2026, 11, 1), "key") as attempt:
        assert attempt.checkpoint(spark.range(3)).count() == 3
        assert attempt.write("labels", spark.range(5)).count() == 5
        assert attempt.read_tables(spark)["labels"].count() == 5
        manifest = attempt.commit(conventions={}, **FACTS)
    assert read_table(spark, warehouse, "labels").count() == 5
    assert sum(batch.num_rows for batch in RunTables(Storage(warehouse), manifest).batches("labels")) == 5
    for statement in render_spark_views(Storage(warehouse)).split(";\n"):
        spark.sql(statement.rstrip(";"))
    assert spark.table("labels").count() == 5
    spark.catalog.dropTempView("labels")
