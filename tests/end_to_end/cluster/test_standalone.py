"""On a real cluster: the same tables as on one machine, also where parts of it are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from pipelines.warehouse.runs import list_committed
from pipelines.warehouse.storage import Storage
from tests.end_to_end.cluster.conftest import Cluster, find_port, list_children, wait_for
from tests.end_to_end.conftest import ROOT

pytestmark = pytest.mark.cluster

Tables = dict[str, list[tuple[object, ...]]]

TABLES = {"query_metrics", "segment_metrics", "comparisons", "query_changes", "quarantine"}
SECONDS = 1200
# Small executors, so that two fit on one machine.
SMALL = (
    "--executor-memory", "512m", "--driver-memory", "1g", "--conf", "spark.executor.memoryOverhead=256m",
    "--conf", "spark.executor.cores=1", "--conf", "spark.sql.shuffle.partitions=7", "--conf", "spark.ui.enabled=false",
)  # fmt: skip


def build_job(demo: Path, warehouse: Path) -> list[str]:
    options = ["--config", str(demo / "demo.yaml"), "--date", "2026-11-01", "--set", f"warehouse={warehouse}"]
    return [str(ROOT / "jobs" / "evaluate.py"), *options, "--set", "compare={baseline: bm25, movers: 20}"]


def start_on_cluster(
    cluster: Cluster, demo: Path, warehouse: Path, *options: str, **variables: str
) -> subprocess.Popen[bytes]:
    command = ["spark-submit", "--master", cluster.url, "--properties-file", str(ROOT / "conf/spark/cluster.conf")]
    with (cluster.folder / f"{warehouse.name}.log").open("ab") as log:
        return subprocess.Popen(
            [*command, *SMALL, *options, *build_job(demo, warehouse)],
            cwd=cluster.folder,
            env=cluster.environment | variables,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def read_tables(warehouse: Path) -> Tables:
    """All rows of the tables of the only committed run, exactly as they are stored, in one order."""
    (manifest,) = list_committed(Storage(str(warehouse)))
    tables = {}
    with duckdb.connect() as duck:
        for name, record in manifest.tables.items():
            files = f"read_parquet('{warehouse}/{record.path}/*.parquet', hive_partitioning = false)"
            tables[name] = duck.sql(f"SELECT * FROM {files} ORDER BY ALL").fetchall() if record.rows else []
    return tables


def require_equal(tables: Tables, expected: Tables) -> None:
    assert set(tables) == set(expected) >= TABLES
    assert len(tables["query_metrics"]) == 9_000
    for name, rows in expected.items():
        assert repr(tables[name]) == repr(rows), name


@pytest.fixture(scope="module")
def expected(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables of the command on this machine alone."""
    warehouse = tmp_path_factory.mktemp("alone") / "warehouse"
    script, *options = build_job(demo, warehouse)
    local = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    command = [sys.executable, script, *options]
    done = subprocess.run(command, env=local, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return read_tables(warehouse)


def wait_for_files(warehouse: Path, pattern: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the run has written such files; it must not have ended by then."""
    wait_for(lambda: list(warehouse.glob(pattern)) or process.poll() is not None, pattern, SECONDS)
    assert process.poll() is None, "it ended before it could be disturbed"


def test_a_cluster_with_the_packed_environment_gives_the_same_tables(
    cluster: Cluster, demo: Path, expected: Tables, tmp_path: Path
) -> None:
    python = (ROOT / "build" / "environment" / "bin" / "python").resolve()
    missing = subprocess.run([python, "-c", "import numpy"], env={}, capture_output=True, check=False)
    assert b"No module named 'numpy'" in missing.stderr, "the workers have the libraries from the archive only"
    archive = ("--archives", f"{ROOT}/build/environment.tar.gz#environment")
    packed = {"PYSPARK_PYTHON": "./environment/bin/python"}
    process = start_on_cluster(cluster, demo, tmp_path / "packed", *archive, **packed)
    wait_for(lambda: len(cluster.list_executors()) == 2 or process.poll() is not None, "two executors", SECONDS)
    assert process.wait(SECONDS) == 0, read_end(cluster, "packed")
    require_equal(read_tables(tmp_path / "packed"), expected)


def test_spark_connect_gives_the_same_tables(cluster: Cluster, demo: Path, expected: Tables, tmp_path: Path) -> None:
    port = find_port()
    server = cluster.start(
        "connect",
        "org.apache.spark.deploy.SparkSubmit",
        *("--master", cluster.url, *SMALL, "--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
        ready="Spark Connect server started",
    )
    try:
        done = subprocess.run(
            ["python", *build_job(demo, tmp_path / "connect")],
            cwd=ROOT,
            env=cluster.environment | {"SPARK_REMOTE": f"sc://127.0.0.1:{port}", "JAVA_HOME": "/nowhere"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Warning" not in done.stderr
    require_equal(read_tables(tmp_path / "connect"), expected)


def test_a_killed_driver_publishes_nothing_and_the_next_run_finishes(
    cluster: Cluster, demo: Path, expected: Tables, tmp_path: Path
) -> None:
    warehouse = tmp_path / "driver"
    process = start_on_cluster(cluster, demo, warehouse)
    wait_for_files(warehouse, "_attempts/*/tables/query_metrics/**/*.parquet", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    assert list_committed(Storage(str(warehouse))) == []
    wait_for(lambda: not cluster.list_executors(), "the executors of the killed driver to end")
    assert start_on_cluster(cluster, demo, warehouse).wait(SECONDS) == 0, read_end(cluster, "driver")
    require_equal(read_tables(warehouse), expected)
    assert not list(warehouse.glob("_attempts/*")), "what the killed run left is removed"


def test_a_killed_executor_and_a_killed_worker_change_nothing(
    cluster: Cluster, demo: Path, expected: Tables, tmp_path: Path
) -> None:
    warehouse = tmp_path / "lost"
    process = start_on_cluster(cluster, demo, warehouse)
    wait_for_files(warehouse, "_attempts/*/owner.json", process)
    first, *_ = cluster.list_executors()
    os.kill(first, signal.SIGKILL)
    wait_for_files(warehouse, "_attempts/*/tables/query_metrics/part-*.parquet", process)
    assert first not in cluster.list_executors()
    worker = cluster.workers["worker-2"]
    executors = [child for child in list_children(worker.pid) if child in cluster.list_executors()]
    worker.send_signal(signal.SIGKILL)
    for executor in executors:
        with suppress(ProcessLookupError):  # it may have noticed
            os.kill(executor, signal.SIGKILL)
    assert process.wait(SECONDS) == 0, read_end(cluster, "lost")
    require_equal(read_tables(warehouse), expected)


def read_end(cluster: Cluster, name: str) -> str:
    return (cluster.folder / f"{name}.log").read_text()[-3000:]
