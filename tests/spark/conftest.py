"""One local session for each worker, started at its first use."""

import os
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


def _choose_processors() -> None:
    """Give each process of the tests, and what it starts from here on, its own part of the processors.

    Python and Java wake each other for every call. From one processor to another, most of all in a virtual machine,
    that takes the kernel longer than the call.
    """
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER"), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if worker is None or not hasattr(os, "sched_setaffinity"):
        return
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) >= workers:
        os.sched_setaffinity(0, processors[int(worker.removeprefix("gw")) :: workers])


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    _choose_processors()
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
