"""One shared local session, made at its first use."""

from collections import Counter
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from jobs.session import session
from pipelines.config import Spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = {"spark.sql.shuffle.partitions": "3", "spark.driver.memory": "2g"}
    with session(Spark(master="local[2]", settings=settings), "assay tests") as made:
        yield made


@pytest.fixture(autouse=True, scope="module")
def _clean(spark: SparkSession) -> Iterator[None]:
    """What the tests of a module register is gone after them; to ask after each would cost more than most tests."""
    yield
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)


@pytest.fixture(autouse=True)
def _as_before(spark: SparkSession) -> Iterator[None]:
    """What a test sets is as before after it."""
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many corruptions came to which end."""
    reports = [
        report for of in terminalreporter.stats.values() for report in of if getattr(report, "when", "") == "call"
    ]
    ends = Counter(value for report in reports for key, value in report.user_properties if key == "end")
    if ends:
        told = ", ".join(f"{count} {end}" for end, count in ends.most_common())
        terminalreporter.write_line(f"corruptions: {told}")
