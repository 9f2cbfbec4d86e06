"""Sums with the same bits for any partitions."""

import math

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.labels.exact_sums import GRID, sum_exactly


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7])
def test_the_sum_is_exact_and_does_not_depend_on_the_partitions(spark: SparkSession, scale: float) -> None:
    values = (np.random.default_rng(1).normal(size=5_000) * scale).tolist()
    rows = spark.createDataFrame([(value,) for value in [*values, None]], "value double")
    sums = [rows.repartition(parts).agg(sum_exactly(F.col("value"))).collect()[0][0] for parts in (1, 3, 50)]
    assert len(set(sums)) == 1
    assert sums[0] == pytest.approx(math.fsum(values), abs=len(values) / GRID)


def test_no_numbers_have_no_sum(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(None,)], "value double")
    assert rows.agg(sum_exactly(F.col("value"))).collect()[0][0] is None
