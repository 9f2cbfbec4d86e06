"""The DAG in a real Airflow: dates, the gate, retries, assets and a backfill."""

from __future__ import annotations

import datetime as dt
import os
import signal
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pipelines.warehouse.runs import list_committed
from pipelines.warehouse.storage import Storage
from schemas.outputs import OUTPUTS
from tests.end_to_end.cluster.conftest import find_port
from tests.end_to_end.conftest import BIN, ROOT
from tests.end_to_end.jobs.test_backfill import DAYS, write_config, write_day

pytestmark = pytest.mark.airflow

BIN_OF_AIRFLOW = ROOT / ".venv-airflow" / "bin"
PATIENCE = 1200.0  # seconds for all runs of a backfill
SECRET = "hunter2-of-airflow"


class Airflow:
    """An Airflow with a data base of its own, whose only DAG is ours."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.warehouse = folder, folder / "warehouse"
        self.port = find_port()
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
        self.environment = inherited | {
            "PATH": f"{BIN_OF_AIRFLOW}{os.pathsep}{os.environ['PATH']}",
            "AIRFLOW_HOME": str(folder / "airflow"),
            # Several processes share the file; on a busy machine five seconds are too few for a lock.
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder}/airflow/airflow.db?timeout=120",
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "conf" / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "1",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{self.port}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": "of this test only, " * 4,
            "ASSAY_HOME": str(ROOT),
            "ASSAY_CONFIG": str(folder / "assay.yaml"),
            "ASSAY_WAREHOUSE": f"file://{self.warehouse}",
            "ASSAY_LAUNCH": f"env PLANTED_PASSWORD={SECRET} {BIN}/assay evaluate",
        }

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["airflow", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def query(self, sql: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(f"file:{self.folder}/airflow/airflow.db?mode=ro", uri=True) as connection:
            return connection.execute(sql).fetchall()

    def read_states(self) -> dict[str, str]:
        """The state of the task, by the date on which the interval starts; of the newest run of each."""
        rows = self.query(
            "SELECT substr(r.data_interval_start, 1, 10), t.state FROM dag_run r "
            "JOIN task_instance t ON t.run_id = r.run_id AND t.dag_id = r.dag_id ORDER BY r.id"
        )
        return {str(date): str(state) for date, state in rows}

    def count_assets(self) -> dict[str, int]:
        """How often each asset was updated."""
        rows = self.query("SELECT a.name, count(*) FROM asset_event e JOIN asset a ON a.id = e.asset_id GROUP BY 1")
        return {str(name): int(str(count)) for name, count in rows}


@pytest.fixture
def airflow(tmp_path: Path) -> Airflow:
    """Four days of data, of which the last is worse, and none for a fifth.

    Each test has its own data base: a backfill processes the runs of `dags test` again where their logical dates are
    among its own, and the intervals of these begin a day earlier.
    """
    for date in DAYS:
        write_day(tmp_path, date, worse=date == DAYS[-1])
    write_config(tmp_path)
    started = Airflow(tmp_path)
    migrated = started.call("db", "migrate")
    assert migrated.returncode == 0, migrated.stderr
    return started


@pytest.fixture
def start(airflow: Airflow) -> Iterator[Callable[[str], None]]:
    """Start a service of Airflow; all are stopped at the end."""
    processes = []

    def start_service(name: str) -> None:
        with (airflow.folder / f"{name}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    ["airflow", name],
                    cwd=airflow.folder,
                    env=airflow.environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    yield start_service
    for process in reversed(processes):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        with suppress(ProcessLookupError):  # what it started may outlive it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)


def list_dates(airflow: Airflow) -> list[str]:
    return sorted(manifest.dt for manifest in list_committed(Storage(str(airflow.warehouse))))


def wait_for_states(airflow: Airflow, expected: dict[str, str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not expected.items() <= airflow.read_states().items():
        log = (airflow.folder / "scheduler.log").read_text(errors="replace")
        assert time.monotonic() < deadline, (airflow.read_states(), log[-5000:])
        time.sleep(2)


def test_each_run_evaluates_the_date_of_its_interval_and_a_gate_fails_it(airflow: Airflow) -> None:
    for day in ("2026-11-02", "2026-11-03"):  # the day on which the run starts
        done = airflow.call("dags", "test", "assay_daily", f"{day}T04:15:00")
        assert done.returncode == 0, done.stdout[-5000:]
    assert list_dates(airflow) == DAYS[:2]
    assert set(airflow.count_assets()) == {f"assay_{name}" for name in list_assets()}

    failed = airflow.call("dags", "test", "assay_daily", "2026-11-05T04:15:00")
    assert failed.returncode == 1
    assert "exit code 6: the gate does not pass; the run is published" in failed.stdout
    assert airflow.read_states()[DAYS[3]] == "failed", "it has three retries, and none is used"
    assert list_dates(airflow) == [*DAYS[:2], DAYS[3]], "the run is published"


def test_a_backfill_runs_each_day_and_a_missing_input_is_tried_again(
    airflow: Airflow, start: Callable[[str], None]
) -> None:
    start("api-server")
    wait_for_server(airflow)
    backfill = ("backfill", "create", "--dag-id", "assay_daily", "--reprocess-behavior", "completed")
    for command in (  # before the scheduler writes too: SQLite has one writer
        ("dags", "reserialize"),
        ("dags", "unpause", "--yes", "assay_daily"),
        (*backfill, "--from-date", DAYS[0], "--to-date", f"{DAYS[2]}T23:59:59"),
    ):
        done = airflow.call(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    start("scheduler")
    wait_for_states(airflow, dict.fromkeys(DAYS[:3], "success"))
    assert list_dates(airflow) == DAYS[:3]
    assert airflow.count_assets() == {f"assay_{name}": 3 for name in list_assets()}

    # The newest interval was scheduled when the DAG was unpaused.
    newest = (dt.datetime.now(dt.UTC) - dt.timedelta(days=1, hours=4, minutes=15)).date().isoformat()
    wait_for_states(airflow, {newest: "up_for_retry"})
    logs = [path.read_text(encoding="utf-8") for path in airflow.folder.glob("airflow/logs/dag_id=*/run_id=sched*/*/*")]
    assert any("exit code 3; the log has the reason" in log for log in logs)
    assert not any(SECRET in log for log in logs)


def wait_for_server(airflow: Airflow) -> None:
    """Wait until the API server answers, which tasks need."""
    deadline = time.monotonic() + PATIENCE
    while not is_up(airflow):
        assert time.monotonic() < deadline, (airflow.folder / "api-server.log").read_text(errors="replace")[-5000:]
        time.sleep(2)


def is_up(airflow: Airflow) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{airflow.port}/api/v2/version", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def list_assets() -> list[str]:
    """The tables that the DAG declares, all of them published ones."""
    text = (ROOT / "conf" / "airflow" / "assay_daily.py").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("TABLES = ")]
    tables = [name.strip('" ') for name in line.partition("(")[2].rstrip(")").split(",")]
    assert set(tables) <= set(OUTPUTS)
    return tables
