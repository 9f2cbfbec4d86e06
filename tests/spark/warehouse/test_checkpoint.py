"""A checkpoint is computed once, in files or in memory."""

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.storage import Storage


@pytest.mark.parametrize("small", [False, True])
def test_a_checkpoint_is_computed_once_and_leaves_nothing(spark: SparkSession, tmp_path: Path, small: bool) -> None:
    storage = Storage(str(tmp_path / "w"))
    with Attempt(storage, dt.date(2026, 11, 1), "key", small=small) as attempt:
        drawn = spark.range(100).withColumn("value", F.rand())
        once = attempt.checkpoint(drawn)
        first, second = ({row["value"] for row in once.collect()} for _ in range(2))
        assert first == second and len(first) == 100
        assert bool(list(storage.list(f"_attempts/{attempt.run}/checkpoints"))) is not small
    assert not list(storage.list("_attempts"))
