"""One local session for each worker, started at its first use."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from jobs.support.session import SMALL_COLLECTOR, SMALL_JAVA, open_session
from pipelines.config.spark import SparkSettings

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    # As for small runs; the tests on a cluster, on Spark Connect and with a session of the caller plan adaptively.
    "spark.sql.adaptive.enabled": "false",
    # Nearly all code runs a few times only: to optimise it takes longer than to run it. Each collection looks through
    # what Java keeps of hundreds of queries: with more space for new objects, there are few.
    "spark.driver.extraJavaOptions": " ".join((*SMALL_JAVA, SMALL_COLLECTOR, "-Xmn500m")),
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with open_session(SparkSettings(master="local[2]", settings=SETTINGS), "assay tests") as session:
        yield session


@pytest.fixture(autouse=True, scope="module")
def _drop_views(spark: SparkSession) -> Iterator[None]:
    """Drop the temporary views of each module; after each test it would cost more than most tests."""
    yield
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)


@pytest.fixture(autouse=True)
def _restore_partitions(spark: SparkSession) -> Iterator[None]:
    """Restore the number of shuffle partitions after each test."""
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
