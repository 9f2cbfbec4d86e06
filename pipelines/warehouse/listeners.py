"""Whether somebody listens to what Spark reads and writes, such as the listener of OpenLineage."""

from __future__ import annotations

from pyspark.sql import SparkSession

_SETTINGS = ("spark.extraListeners", "spark.sql.queryExecutionListeners")


def has_listeners(spark: SparkSession) -> bool:
    """Whether listeners are configured: they do not see what workers read and write by themselves."""
    return any(spark.conf.get(name, "") for name in _SETTINGS)
