"""Ctrl-C and SIGTERM in the middle of Spark's work: one line, the documented code, and nothing left."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.end_to_end.conftest import ROOT


def list_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_one_line_and_leaves_nothing(
    environment: dict[str, str], demo: Path, tmp_path: Path, number: int
) -> None:
    warehouse, temporary = tmp_path / "w", tmp_path / "tmp"
    temporary.mkdir()
    command = ["assay", "evaluate", "--config", str(demo / "demo.yaml"), "--date", "2026-11-01"]
    with (
        (tmp_path / "err").open("w+", encoding="utf-8") as err,
        subprocess.Popen(
            [*command, "--set", f"warehouse={warehouse}", "--set", "checks=full"],
            cwd=ROOT,
            env=environment | {"TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        deadline = time.monotonic() + 300
        while not list(warehouse.glob("_attempts/*/tables/*/_temporary")) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        before = len((tmp_path / "err").read_text(encoding="utf-8"))
        # As a terminal does: to every process of the group. SIGTERM is sent by schedulers to the one that they started.
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, _ = process.communicate(timeout=120)
    printed = (tmp_path / "err").read_text(encoding="utf-8")[before:]
    assert process.returncode == 128 + number, printed
    lines = [line for line in printed.splitlines() if "stage=" not in line]  # a stage that ended just before
    assert lines == ["interrupted; a run that was not committed yet is removed"]
    assert out == ""
    assert list_files(warehouse) == []
    assert list(temporary.glob("assay-*")) == []
