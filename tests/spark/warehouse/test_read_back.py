"""A table that was written and cannot be read again is named by its file."""

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.storage import Storage
from schemas.errors import InputError
from schemas.spark_errors import raise_input_errors


def test_a_written_table_that_cannot_be_read_back_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with Attempt(Storage(str(tmp_path)), dt.date(2026, 11, 1), "key") as attempt:
        attempt.write("labels", spark.range(5))
        for file in tmp_path.rglob("*.parquet"):
            file.write_bytes(b"no footer")
        with pytest.raises(InputError) as caught, raise_input_errors("while evaluating"):
            attempt.read_tables(spark)["labels"].count()
    assert f"{tmp_path}/_attempts/" in str(caught.value)
