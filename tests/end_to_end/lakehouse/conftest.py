"""A Spark session with the real runtimes of Delta and Iceberg, each with a catalog in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.support.session import open_session
from pipelines.config.spark import SparkSettings
from pipelines.warehouse.catalog.settings import OutputSettings
from tests.end_to_end.conftest import ROOT

JARS = ROOT / "build" / "jars"


def build_settings(folder: Path) -> dict[str, str]:
    """The settings of docs/lakehouse.md, for a small machine."""
    return {
        "spark.jars": ",".join(str(jar) for pattern in ("delta-*", "iceberg-*") for jar in sorted(JARS.glob(pattern))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder / "delta"),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "iceberg"),
        "spark.sql.catalog.lake.cache-enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both catalogs."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def spark(lake: Path) -> Iterator[SparkSession]:
    settings = SparkSettings(master="local[2]", settings=build_settings(lake))
    with open_session(settings, "lakehouse") as session:
        yield session


@pytest.fixture(params=["delta", "iceberg"])
def output(request: pytest.FixtureRequest) -> OutputSettings:
    """A namespace of its own for each test and format."""
    name = request.node.name.partition("[")[0].removeprefix("test_")
    catalog = {"delta": "spark_catalog", "iceberg": "lake"}[request.param]
    return OutputSettings(format=request.param, namespace=f"{catalog}.{name}")
