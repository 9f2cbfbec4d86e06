"""The Spark session: local by default, the cluster's settings otherwise."""

from __future__ import annotations

import importlib
import logging
import os
import re
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.support.java import build_archive_options, start_java
from jobs.support.signals import install_handlers, received_signal
from pipelines.plan import SMALL_BYTES
from pipelines.warehouse.leftovers import remove_unfinished_attempts
from pipelines.warehouse.owner import open_temporary_folder
from schemas.errors import AssayError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipelines.config.model import Config
    from pipelines.config.spark import SparkSettings

logger = logging.getLogger(__name__)

SWITCH_SECONDS = 0.0005
STOP_SECONDS = 20.0  # to wait for Spark to stop after a signal

ROOT = Path(__file__).resolve().parents[2]
DAEMON = "jobs.support.daemon"
SHIPPED = ("schemas", "udfs", "pipelines", "jobs", "assay")

# What our query plans need; settings of the user take precedence.
REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    # Joins and aggregations by query and system reuse the partitioning by query.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # Aggregate arrays in a hash table; the default falls back to sorting after 128 keys.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
    # Limit Arrow batches by rows only. With a limit in bytes, Spark sums the sizes of all columns after every row,
    # which takes as long as everything else; only the few rows with the kept impressions of a day are large.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.ui.showConsoleProgress": "false",
    # By default PySpark records the line of code behind every column, with seven calls to Java for each.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
JAVA = (
    f"-Dlog4j2.configurationFile={(ROOT / 'conf' / 'log4j2.properties').as_uri()}",
    "-Darrow.enable_unsafe_memory_access=true",  # no bounds check for each value written for Python
    # Each row passes through many small, deeply nested methods; the default limits inline only some of them.
    "-XX:MaxInlineLevel=25",
    "-XX:InlineSmallCode=4000",
    "-XX:TypeProfileWidth=4",
    "-XX:+IgnoreUnrecognizedVMOptions",  # some JVMs lack these
)
COLLECTOR = "-XX:+UseParallelGC"  # a batch job needs throughput, not short pauses
# With little data, Java spends more time on optimising the code than the code takes, and Spark more on planning a query
# again after each of its stages. With one compiler, Java reserves too little memory for what it compiles.
SMALL_COLLECTOR = "-XX:+UseSerialGC"
SMALL_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
# With much data, loops over rows are worth the second compiler, but not the many methods that plan queries. In a run on
# 31 million rows, both compilers took 18 of 63 s of processor time, and 11 of 53 s with these limits. With a higher one
# for loops (BackEdge), those over rows stay slow for too long.
LARGE_JAVA = (
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=10000",
    "-XX:Tier4CompileThreshold=100000",
    "-XX:Tier4BackEdgeThreshold=100000",
)
SMALL = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2"}
TINY_BYTES, TINY = 2**20, {"spark.sql.shuffle.partitions": "1", "spark.sql.leafNodeDefaultParallelism": "1"}
JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")  # read by the JVM itself
LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.memory": "4g",
    # Each partition that is passed to Python costs 0.1 s; the default of 200 is for clusters.
    "spark.sql.shuffle.partitions": "16",
    # Spark compiles the code of a stage, and Java optimises it, once for as long as the stage is remembered. A run has
    # more stages than the default of 100: the next day of a backfill would find none of them.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Split files so that few cores share them evenly, and read small ones together: by default each counts as 4 MB.
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.files.openCostInBytes": "64k",
    # Workers reuse the memory of large arrays; the kernel would zero it again each time.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(256 * 2**20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(2**30),
    "spark.executorEnv.MALLOC_TOP_PAD_": str(16 * 2**20),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


@contextmanager
def open_session(
    settings: SparkSettings,
    name: str,
    *,
    input_bytes: int | None = None,
    spark_bytes: int | None = None,
    imports: Sequence[str] = (),
) -> Iterator[SparkSession]:
    """Open a session that stops at the end of the block, also after a signal.

    `input_bytes` is the size of the data, where it is known: little data gets a plan of one task and a JVM that starts
    fast. `spark_bytes` is the part whose rows pass through Spark: where workers read the rest, optimised code takes
    Java longer to compile than it saves. `imports` are modules of a run that are needed later; they are imported while
    Java starts, and those of its workers while its first queries are planned.
    """
    _require_java()
    # Workers would otherwise start the first python3 on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with open_temporary_folder() as folder:
        spark = _build(settings, name, (input_bytes, spark_bytes), imports)
        install_handlers()
        try:
            if spark.conf.get("spark.python.daemon.module", None) != DAEMON:  # whose workers have our packages
                spark.addArtifacts(zip_packages(folder), pyfile=True)
            elif imports:
                _start_workers(spark)
            yield spark
        finally:
            _stop(spark)
            remove_unfinished_attempts()  # again: tasks that still ran may have written since


def _start_workers(spark: SparkSession) -> None:
    """Let our daemon load its modules while the first queries are planned."""

    def run() -> None:
        with suppress(Exception):  # the first task of the run reports it
            spark.range(1).mapInArrow(iter, "id bigint").collect()

    threading.Thread(target=run, name="start workers", daemon=True).start()


def _stop(spark: SparkSession) -> None:
    """Stop the session; an error here must not hide the first one."""

    def stop() -> None:
        try:
            spark.stop()
        except Exception as error:
            logger.debug("Spark did not stop cleanly: %s", error)

    if received_signal() is None:
        stop()
        return
    # The signal interrupted a call to Java, whose answer this thread would take for the next one's: use another.
    thread = threading.Thread(target=stop, name="stop", daemon=True)
    thread.start()
    thread.join(timeout=STOP_SECONDS)


def _build(
    settings: SparkSettings, name: str, sizes: tuple[int | None, int | None], imports: Sequence[str]
) -> SparkSession:
    from pyspark.conf import SparkConf
    from pyspark.sql import SparkSession

    submitted, remote = "PYSPARK_GATEWAY_PORT" in os.environ, "SPARK_REMOTE" in os.environ
    elsewhere = submitted or remote
    local = not elsewhere and (settings.master or "local").startswith("local")
    chosen = {**(build_local_settings(settings.settings, *sizes) if local else {}), **REQUIRED}
    chosen |= settings.settings
    if settings.master is not None and not elsewhere:
        chosen["spark.master"] = settings.master
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if submitted:  # settings passed to spark-submit take precedence
        conf = SparkConf()
        chosen = {key: value for key, value in chosen.items() if not conf.contains(key)}
    if remote:  # a server has its own memory, ports and Java options
        chosen = {key: value for key, value in chosen.items() if key.startswith("spark.sql.")}
    if imports:  # only now that PySpark is imported: two threads must not import it at once
        # By default the importing thread holds the interpreter for 5 ms, and each call to Java asks for it twice.
        sys.setswitchinterval(SWITCH_SECONDS)
        threading.Thread(target=_import_quietly, args=(imports,), name="imports", daemon=True).start()
    if not elsewhere:
        start_java({"spark.app.name": name, **chosen})
    builder = SparkSession.builder.appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def list_imports(pipeline: str, config: Config) -> tuple[str, ...]:
    """Return the modules of a run that take long to import."""
    return (pipeline,) if config.checks == "off" else (pipeline, "pipelines.quality.expectations.engine")


def _import_quietly(modules: Sequence[str]) -> None:
    """Import modules ahead of their use; where that fails, their use reports the error."""
    with suppress(Exception):
        for module in modules:
            importlib.import_module(module)


def build_local_settings(
    settings: Mapping[str, str], input_bytes: int | None, spark_bytes: int | None = None
) -> dict[str, str]:
    """Return the defaults of a session on this machine for data of this size; None where the size is not known."""
    size = float("inf") if input_bytes is None else input_bytes
    small = size < SMALL_BYTES
    planned = {**(SMALL if small else {}), **(TINY if size < TINY_BYTES else {})}
    passes_little = spark_bytes is not None and spark_bytes < SMALL_BYTES
    java = build_java_options(settings, small=small, one_compiler=small or passes_little)
    return {**LOCAL, **_choose_daemon(), **planned, "spark.driver.defaultJavaOptions": java}


def _choose_daemon() -> dict[str, str]:
    """Let workers be forked by our own daemon, if they run on the interpreter of this process."""
    if os.environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        return {}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {
        "spark.python.daemon.module": DAEMON,
        "spark.executorEnv.PYTHONPATH": path,
        # Over TCP, each task waits some 40 ms for an acknowledgement that the kernel delays.
        "spark.python.unix.domain.socket.enabled": "true",
    }


def build_java_options(settings: Mapping[str, str], *, small: bool = False, one_compiler: bool = False) -> str:
    """Return the options for Java; our collector only if none is set, because Java refuses two."""
    options = [settings.get("spark.driver.extraJavaOptions", ""), *[os.environ.get(v, "") for v in JAVA_VARIABLES]]
    has_collector = re.search(r"-XX:\+Use\w+GC\b", " ".join(options))
    collector = () if has_collector else (SMALL_COLLECTOR if small else COLLECTOR,)
    compilers = SMALL_JAVA if one_compiler else LARGE_JAVA
    return " ".join((*JAVA, *compilers, *collector, *build_archive_options()))


def zip_packages(folder: Path) -> str:
    """Zip our packages for executors that have no copy of the project."""
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
        "Spark needs Java 17 or newer; there is none on the PATH or in JAVA_HOME",
        hint="install it, e.g. `apt-get install openjdk-17-jre-headless` or `brew install openjdk@17`",
    )
