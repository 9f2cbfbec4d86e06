"""The script for cron: one run at a time, logs that do not pile up, a summary for a mail. No date here needs Java."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.unit.jobs.test_reuse import config as config
from tests.unit.jobs.test_reuse import publish_same_work

ROOT = Path(__file__).parents[3]
DAY = 86_400


def run_nightly(config: Path, date: str, **changes: str) -> subprocess.CompletedProcess[str]:
    settings = {"ASSAY_LOGS": str(config.parent / "logs"), "ASSAY_COMMAND": f"{Path(sys.executable).parent}/assay"}
    command = [str(ROOT / "conf" / "cron" / "nightly"), str(config), date]
    environment = os.environ | settings | {"JAVA_HOME": "/nowhere"} | changes
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_summary_begins_with_the_outcome_and_has_the_result(config: Path) -> None:
    run = publish_same_work(config)
    done = run_nightly(config, "2026-11-01")
    assert (done.returncode, done.stderr) == (0, "")
    subject, *lines = done.stdout.splitlines()
    assert subject == "assay: assay 2026-11-01: passed"
    assert f"Run {run} was already committed; --force repeats it" in lines
    assert lines[-1] == f"Log: {config.parent}/logs/assay-2026-11-01.log"


def test_a_failure_is_named_with_its_exit_code_and_reason(config: Path) -> None:
    publish_same_work(config)
    text = config.read_text()
    config.write_text(text.replace("rankings.csv", "none.csv"))
    done = run_nightly(config, "2026-11-02", ASSAY_DAYS="2")
    assert done.returncode == 3
    assert done.stdout.startswith("assay: assay 2026-11-02: INPUT MISSING OR UNREADABLE\n")
    assert "assay: Input: 2 of 2 dates did not pass, worst: unusable input (2026-11-01)" in done.stdout
    config.write_text("metrisc: [ndcg@10]\n")
    wrong = run_nightly(config, "2026-11-02")
    assert wrong.returncode == 2
    assert "did you mean 'metrics'?" in wrong.stdout


def test_two_runs_of_a_configuration_are_never_at_once(config: Path) -> None:
    publish_same_work(config)
    (config.parent / "logs").mkdir()
    with (config.parent / "logs" / "assay.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run_nightly(config, "2026-11-01")
        assert done.returncode == 75
        assert "the previous run" in done.stdout
    assert run_nightly(config, "2026-11-01").returncode == 0


def test_old_logs_are_compressed_and_then_removed(config: Path) -> None:
    publish_same_work(config)
    logs = config.parent / "logs"
    logs.mkdir()
    for name, days in {"assay-2026-10-30.log": 2, "assay-2026-09-01.log.gz": 60, "other-2026-09-01.log": 60}.items():
        (logs / name).write_text("text")
        os.utime(logs / name, (time.time() - days * DAY,) * 2)
    assert run_nightly(config, "2026-11-01").returncode == 0
    kept = {path.name for path in logs.iterdir()}
    assert kept == {"assay-2026-10-30.log.gz", "assay-2026-11-01.log", "assay.lock", "other-2026-09-01.log"}
