"""The Spark session: local by default, the cluster's settings otherwise."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from schemas.errors import AssayError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipelines.config import Spark

logger = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ("schemas", "udfs", "pipelines", "jobs")

# What the plans of this project want; whoever sets one of these elsewhere is heard.
WANTED = {
    "spark.sql.session.timeZone": "UTC",
    # Lets the join by query and system, and the aggregations, reuse the partitioning by query.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # Arrays are collected in a hash table; the default would sort after 128 keys.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
    # Rows on their way to Python make a batch by their number alone. With a limit in bytes, Spark adds up the
    # sizes of all columns after every row, which takes as long as all the rest; no row of ours is large.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.ui.showConsoleProgress": "false",
}
JAVA = (
    f"-Dlog4j2.configurationFile={(ROOT / 'conf' / 'log4j2.properties').as_uri()}",
    "-Darrow.enable_unsafe_memory_access=true",  # no check of the place of every number that is written for Python
    # A row goes through many small methods, nested deeply: with the compiler's usual limits some stay calls.
    "-XX:MaxInlineLevel=25",
    "-XX:InlineSmallCode=4000",
    "-XX:TypeProfileWidth=4",
    "-XX:+IgnoreUnrecognizedVMOptions",  # not every JVM knows these
)
COLLECTOR = "-XX:+UseParallelGC"  # nobody waits for a single answer of a batch: all that counts is the sum
FOR_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")  # variables that Java reads by itself
LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.memory": "4g",
    # Every partition that meets Python costs a tenth of a second; 200 of them are for clusters.
    "spark.sql.shuffle.partitions": "16",
    # Files are read in pieces that few cores can share evenly.
    "spark.sql.files.maxPartitionBytes": "32m",
    # Workers keep the memory of large arrays for the next ones: the system would clear it anew each time.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(256 * 2**20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(2**30),
    "spark.executorEnv.MALLOC_TOP_PAD_": str(16 * 2**20),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


@contextmanager
def session(settings: Spark, name: str) -> Iterator[SparkSession]:
    """A session that ends with the block, also when the process is told to stop."""
    _require_java()
    # Workers would otherwise start whichever python3 comes first on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _stopped_cleanly(), tempfile.TemporaryDirectory(prefix="assay-") as folder:
        spark = _build(settings, name)
        try:
            spark.addArtifacts(_zipped(Path(folder)), pyfile=True)
            yield spark
        finally:
            _stop(spark)


def _stop(spark: SparkSession) -> None:
    """End the session; where a signal cut a call to the JVM short, that must not hide why we stop."""
    try:
        spark.stop()
    except Exception as error:
        logger.debug("Spark did not stop cleanly: %s", error)


def _build(settings: Spark, name: str) -> SparkSession:
    from pyspark.conf import SparkConf
    from pyspark.sql import SparkSession

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    elsewhere = submitted or "SPARK_REMOTE" in os.environ
    local = not elsewhere and (settings.master or "local").startswith("local")
    here = {**LOCAL, "spark.driver.defaultJavaOptions": java_options(settings.settings)} if local else {}
    chosen = {**here, **WANTED, **settings.settings}
    if settings.master is not None and not elsewhere:
        chosen["spark.master"] = settings.master
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if submitted:  # what spark-submit was told is known to the JVM, and wins
        told = SparkConf()
        chosen = {key: value for key, value in chosen.items() if not told.contains(key)}
    builder = SparkSession.builder.appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def java_options(settings: Mapping[str, str]) -> str:
    """What Java is started with; of collectors, ours only where nobody has chosen one: with two Java does not start."""
    told = [settings.get("spark.driver.extraJavaOptions", ""), *[os.environ.get(name, "") for name in FOR_JAVA]]
    elsewhere = re.search(r"-XX:\+Use\w+GC\b", " ".join(told))
    return " ".join(JAVA if elsewhere else (*JAVA, COLLECTOR))


def _zipped(folder: Path) -> str:
    """Our folders as one zip, for executors that have no copy of the project."""
    target = folder / "assay.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for package in SHIPPED:
            for source in sorted((ROOT / package).rglob("*.py")):
                archive.write(source, source.relative_to(ROOT))
    return str(target)


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if "SPARK_REMOTE" in os.environ or (home and Path(home, "bin", "java").exists()) or shutil.which("java"):
        return
    raise AssayError(
        "Spark needs Java 17 or newer, and none was found on the PATH or in JAVA_HOME",
        hint="install it, e.g. `apt-get install openjdk-17-jre-headless` or `brew install openjdk@17`",
    )


@contextmanager
def _stopped_cleanly() -> Iterator[None]:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that an unfinished attempt is removed."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # once is enough: a second one would interrupt the cleaning up
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
