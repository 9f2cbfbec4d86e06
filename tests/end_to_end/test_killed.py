"""A run that is killed at any moment leaves nothing that a reader could take for a result."""

import signal
import subprocess
import time
from pathlib import Path

from pipelines.runs import committed
from pipelines.storage import Storage
from tests.end_to_end.conftest import ROOT, Run
from tests.end_to_end.test_submit import fingerprint

MOMENTS = 10


def start(environment: dict[str, str], demo: Path, warehouse: Path) -> subprocess.Popen[bytes]:
    command = ["assay", "evaluate", "--config", str(demo / "demo.yaml"), "--date", "2026-11-01"]
    command += ["--set", f"warehouse={warehouse}"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet)


def test_readers_never_see_part_of_a_run(environment: dict[str, str], run: Run, demo: Path, tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed"
    began = time.monotonic()
    assert start(environment, demo, undisturbed).wait(timeout=600) == 0
    whole = time.monotonic() - began

    warehouse = tmp_path / "disturbed"
    for moment in range(MOMENTS):
        process = start(environment, demo, warehouse)
        try:
            process.wait(timeout=whole * (moment + 1) / (MOMENTS + 1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)
        for manifest in committed(Storage(str(warehouse))):  # a run that got as far as its commit is whole
            assert {name: record.rows for name, record in manifest.tables.items()} == {
                "quarantine": 0,
                "query_metrics": 9_000,
                "segment_metrics": 144,
            }
    assert start(environment, demo, warehouse).wait(timeout=600) == 0
    manifests = committed(Storage(str(warehouse)))
    assert manifests
    live = warehouse / manifests[0].tables["query_metrics"].path
    assert fingerprint_of(live, tmp_path / "live") == fingerprint(undisturbed)


def fingerprint_of(run_folder: Path, copy: Path) -> str:
    """The fingerprint of one run's query_metrics, whatever else lies in its warehouse."""
    target = copy / "query_metrics" / "dt=2026-11-01"
    target.mkdir(parents=True)
    (target / run_folder.name).symlink_to(run_folder)
    return fingerprint(copy)


def test_a_run_that_is_told_to_stop_cleans_up(environment: dict[str, str], demo: Path, tmp_path: Path) -> None:
    warehouse = tmp_path / "stopped"
    process = start(environment, demo, warehouse)
    deadline = time.monotonic() + 300
    while not list(warehouse.rglob("*.parquet*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 128 + signal.SIGTERM
    assert not list(warehouse.rglob("part-*.parquet"))
    assert committed(Storage(str(warehouse))) == []
