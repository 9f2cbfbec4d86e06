"""Averages by system, segment and metric."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.outputs import SEGMENT_METRICS


def aggregate(estimates: DataFrame) -> DataFrame:
    """The estimates of single systems, as they are published."""
    alone = estimates.where(F.col("baseline").isNull())
    return alone.withColumnRenamed("candidate", "system").select(*SEGMENT_METRICS.names)
