"""A run that is killed at any moment leaves nothing that a reader could take for a result."""

import signal
import subprocess
import time
from pathlib import Path

from pipelines.warehouse.runs import Manifest, list_committed
from pipelines.warehouse.storage import Storage
from tests.end_to_end.conftest import ROOT, Command, InTurn
from tests.end_to_end.jobs.test_submit import hash_table

MOMENTS = 5  # from the first file on: before, there is nothing to be seen


def build_command(demo: Path, warehouse: Path) -> Command:
    place = ("--date", "2026-11-01", "--set", f"warehouse={warehouse}")
    return ("assay", "evaluate", "--config", demo / "demo.yaml", *place)


def start_evaluation(environment: dict[str, str], demo: Path, warehouse: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(build_command(demo, warehouse), cwd=ROOT, env=environment, stdout=quiet, stderr=quiet)


def count_rows(manifest: Manifest) -> dict[str, int]:
    return {name: record.rows for name, record in manifest.tables.items()}


def test_readers_never_see_part_of_a_run(
    environment: dict[str, str], demo: Path, tmp_path: Path, in_turn: InTurn
) -> None:
    undisturbed = tmp_path / "undisturbed"
    start = time.monotonic()
    process = start_evaluation(environment, demo, undisturbed)
    while not undisturbed.exists() and process.poll() is None:
        time.sleep(0.02)
    first = time.monotonic() - start
    assert process.wait(timeout=600) == 0
    rest = time.monotonic() - start - first
    expected = count_rows(list_committed(Storage(str(undisturbed)))[0])

    warehouse = tmp_path / "disturbed"
    for moment in range(MOMENTS):
        process = start_evaluation(environment, demo, warehouse)
        try:
            process.wait(timeout=first + rest * (moment + 1) / (MOMENTS + 1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)
        for manifest in list_committed(Storage(str(warehouse))):  # a run that got as far as its commit is whole
            assert count_rows(manifest) == expected
    (calm,) = in_turn([build_command(demo, warehouse)])
    assert calm.returncode == 0, calm.stderr
    manifests = list_committed(Storage(str(warehouse)))
    assert manifests
    live = warehouse / manifests[0].tables["query_metrics"].path
    hashes = [hash_table(folder, "system, query_id", 9_000) for folder in (live, undisturbed / "query_metrics")]
    assert hashes[0] == hashes[1]
