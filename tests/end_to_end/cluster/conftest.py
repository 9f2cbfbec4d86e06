"""A Spark cluster of this machine: a master and two workers, as processes from the installed package."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
import pytest

from tests.end_to_end.conftest import BIN

SPARK_HOME = Path(pyspark.__file__).parent
EXECUTOR = "CoarseGrainedExecutorBackend"  # a worker has other children too
PATIENCE = 180.0  # seconds for a process to start


@dataclass
class Cluster:
    """The processes of a cluster, each with its log."""

    folder: Path
    url: str
    environment: dict[str, str]
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *command: str | Path, ready: str) -> subprocess.Popen[bytes]:
        """Start a class of Spark and wait until it logs that it is ready."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [SPARK_HOME / "bin" / "spark-class", *command],
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_for(lambda: re.search(ready, log.read_text(errors="replace")) or process.poll() is not None, name)
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        return process

    def list_executors(self) -> list[int]:
        """The process ids of the executors that run now, by worker."""
        children = [child for worker in self.workers.values() for child in list_children(worker.pid)]
        return [child for child in children if EXECUTOR in read_command(child)]


def wait_for(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: nothing after {seconds:.0f} s"
        time.sleep(0.1)


def list_children(pid: int) -> list[int]:
    """The process ids of the children of a process."""
    tasks = Path(f"/proc/{pid}/task")
    texts = [(task / "children").read_text() for task in tasks.iterdir()] if tasks.exists() else []
    return [int(child) for text in texts for child in text.split()]


def read_command(pid: int) -> str:
    """The command line of a process; empty for one that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return ""


def find_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the installed libraries, but without Assay: executors have it from the zip only."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(f"{SPARK_HOME.parent}\n")  # the .pth files there are not read
    python = folder / "venv" / "bin" / "python"
    missing = subprocess.run([python, "-c", "import numpy, pipelines"], cwd=folder, capture_output=True, check=False)
    assert b"No module named 'pipelines'" in missing.stderr
    return python


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, bare_python: Path) -> Iterator[Cluster]:
    """A standalone master and two workers of one core each, on the loopback interface."""
    folder = tmp_path_factory.mktemp("cluster")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    environment = kept | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": str(bare_python),
    }
    port = find_port()
    started = Cluster(folder, f"spark://127.0.0.1:{port}", environment)
    address: Sequence[str] = ("--host", "127.0.0.1", "--webui-port", "0", "--port")
    processes = [
        started.start("master", "org.apache.spark.deploy.master.Master", *address, str(port), ready="state: ALIVE")
    ]
    try:
        for name in ("worker-1", "worker-2"):
            options = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / name))
            command = ("org.apache.spark.deploy.worker.Worker", *address, "0", *options, started.url)
            started.workers[name] = started.start(name, *command, ready="Successfully registered with master")
            processes.append(started.workers[name])
        yield started
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
