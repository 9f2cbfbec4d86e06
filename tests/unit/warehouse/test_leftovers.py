"""What killed processes leave: found by its owner, and removed by the next run or by vacuum, never earlier."""

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.leftovers import list_attempts, remove_leftovers
from pipelines.warehouse.owner import find_state, name_process, open_temporary_folder, remove_abandoned_folders
from pipelines.warehouse.runs import TableRecord, list_committed, manifest_path
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.vacuum import find_removable, remove_runs

FACTS = {
    "seconds": {}, "config": {}, "config_hash": "c", "code": "v", "spark": "4", "inputs": {}, "systems": ["s"],
    "conventions": {},
}  # fmt: skip

# A process that has everything open that a run can have open, and waits to be killed.
VICTIM = """
import datetime as dt, sys, time
from pathlib import Path
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.owner import name_process, open_temporary_folder
from pipelines.warehouse.runs import TableRecord
from pipelines.warehouse.storage import Storage

storage = Storage(sys.argv[1])
with open_temporary_folder() as folder, Attempt(storage, dt.date(2026, 11, 1), "dead") as attempt:
    storage.put(f"_attempts/{attempt.run}/tables/query_metrics/_temporary/0/part-0.parquet", "")
    storage.put(f"_attempts/{attempt.run}/checkpoints/0/part-0.parquet", "PAR1")
    storage.put(f"query_metrics/dt=2026-11-01/run={attempt.run}/part-0.parquet", "moved, but not committed")
    storage.put(f"data_docs/dt=2026-11-01/run={attempt.run}/index.html", "<p>")
    Path(sys.argv[1], "runs").mkdir()
    Path(sys.argv[1], f"runs/x.json.0.{name_process()}.part").write_text("{")
    print(attempt.run, name_process(), folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[subprocess.Popen[str], str, str, Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(tmp_path / "w")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
    )
    assert process.stdout is not None
    run, token, folder = process.stdout.readline().split()
    return process, run, token, Path(folder)


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def list_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_nothing_of_a_running_process_is_removed(
    victim: tuple[subprocess.Popen[str], str, str, Path], tmp_path: Path
) -> None:
    process, run, token, folder = victim
    try:
        storage, before = Storage(str(tmp_path / "w")), list_files(tmp_path)
        assert find_state(token) == "running"
        assert list(list_attempts(storage)) == [(run, "2026-11-01", "running")]
        assert remove_leftovers(storage) == []
        assert find_removable(storage, keep=1, hours=24).orphans == ()
        assert find_removable(storage, keep=1, hours=0).orphans == ()
        with open_temporary_folder():
            assert folder.exists()
        assert list_files(tmp_path) == before
    finally:
        kill(process)


def test_vacuum_removes_at_once_what_a_killed_process_left(
    victim: tuple[subprocess.Popen[str], str, str, Path], tmp_path: Path
) -> None:
    process, run, token, _ = victim
    kill(process)
    storage = Storage(str(tmp_path / "w"))
    assert find_state(token) == "ended"
    removable = find_removable(storage, keep=1, hours=24)
    assert set(removable.orphans) == {
        f"query_metrics/dt=2026-11-01/run={run}",
        f"data_docs/dt=2026-11-01/run={run}",
        f"_attempts/{run}",
        f"runs/x.json.0.{token}.part",
    }
    remove_runs(storage, removable)
    assert list_files(tmp_path / "w") == []


# A vacuum that is killed after it deleted the first of these: the manifest, or a folder of tables.
KILLED_VACUUM = """
import os, signal, sys
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.vacuum import find_removable, remove_runs

delete = Storage.delete

def delete_and_die(self, name):
    delete(self, name)
    if sys.argv[2] in name:
        os.kill(os.getpid(), signal.SIGKILL)

Storage.delete = delete_and_die
storage = Storage(sys.argv[1])
remove_runs(storage, find_removable(storage, keep=1, hours=24))
"""


@pytest.mark.parametrize("last_deleted", ["runs/", "/run="])
@pytest.mark.parametrize("next_command", ["vacuum", "run"])
def test_what_a_killed_vacuum_left_is_removed_at_once(tmp_path: Path, last_deleted: str, next_command: str) -> None:
    storage, day = Storage(str(tmp_path)), dt.date(2026, 11, 1)
    for key in ("old", "new"):
        with Attempt(storage, day, key) as attempt:
            attempt.write_arrow("labels", pa.table({"a": [1]}))
            attempt.write_arrow("query_metrics", pa.table({"a": [1]}))
            attempt.commit(**FACTS)
    done = subprocess.run([sys.executable, "-c", KILLED_VACUUM, str(tmp_path), last_deleted], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [name for name in list_files(tmp_path) if "run=old" in name], "part of the run is left"
    assert [m.run for m in list_committed(storage)] == [attempt.run]
    if next_command == "vacuum":
        remove_runs(storage, find_removable(storage, keep=1, hours=24))
    else:
        with Attempt(storage, dt.date(2026, 11, 2), "next"):
            pass
    assert not [name for name in list_files(tmp_path) if attempt.run not in name]


def test_the_next_run_removes_at_once_what_a_killed_process_left(
    victim: tuple[subprocess.Popen[str], str, str, Path], tmp_path: Path
) -> None:
    process, run, _, folder = victim
    kill(process)
    storage = Storage(str(tmp_path / "w"))
    with Attempt(storage, dt.date(2026, 11, 2), "next"):
        assert not [name for name in list_files(tmp_path / "w") if run in name]
    assert folder.exists()
    with open_temporary_folder() as ours:
        assert list((tmp_path / "tmp").iterdir()) == [ours]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_run_that_committed_before_it_was_killed_stays(
    victim: tuple[subprocess.Popen[str], str, str, Path], tmp_path: Path
) -> None:
    process, run, _, _ = victim
    storage = Storage(str(tmp_path / "w"))
    storage.put(manifest_path("2026-11-01", run), "{}")  # even where it cannot be read
    kill(process)
    assert remove_leftovers(storage) == [run]
    assert storage.exists(f"query_metrics/dt=2026-11-01/run={run}/part-0.parquet")
    assert find_removable(storage, keep=1, hours=0).orphans == (
        next(name for name in storage.list("runs", suffix=".part")),
    )


def test_a_run_that_commits_while_vacuum_looks_keeps_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(str(tmp_path))
    list_names, waiting = Storage.list, ["commit"]

    def commit_first(self: Storage, name: str = "", **options: Any) -> Iterator[str]:
        if name == "_attempts" and waiting:
            waiting.clear()
            attempt.commit(**FACTS)
            attempt.__exit__(None, None, None)
        return list_names(self, name, **options)

    with Attempt(storage, dt.date(2026, 11, 1), "quick") as attempt:
        attempt.write_arrow("query_metrics", pa.table({"a": [1]}))
        monkeypatch.setattr(Storage, "list", commit_first)
        assert find_removable(storage, keep=1, hours=0).orphans == ()
    assert [m.run for m in list_committed(storage)] == [attempt.run]


def test_the_attempt_of_another_machine_is_kept_for_some_hours(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    owner = {"process": "0123abcd-1-89abcdef", "date": "2026-11-01"}
    storage.put("_attempts/far-1/owner.json", json.dumps(owner))
    storage.put("labels/dt=2026-11-01/run=far-1/part-0.parquet", "")
    assert list(list_attempts(storage)) == [("far-1", "2026-11-01", "unknown")]
    assert remove_leftovers(storage) == []
    assert find_removable(storage, keep=1, hours=24).orphans == ()
    assert set(find_removable(storage, keep=1, hours=0).orphans) == {
        "_attempts/far-1", "labels/dt=2026-11-01/run=far-1"
    }  # fmt: skip


def test_a_process_is_known_by_more_than_its_number() -> None:
    machine, pid, start = name_process().split("-")
    assert find_state(name_process()) == "running"
    assert find_state(f"{machine}-{pid}-{'0' * len(start)}") == "ended"  # the number was given to another process
    assert find_state(f"{'0' * len(machine)}-{pid}-{start}") == "unknown"
    assert [find_state(token) for token in ("", "-", "a-b-c", f"{machine}--{start}")] == ["unknown"] * 4


def stage(attempt: Attempt, name: str) -> None:
    """Write a table as Spark does, without Spark."""
    attempt.tables[name] = TableRecord(path=f"{name}/dt={attempt.dt}/run={attempt.run}", rows=1)
    attempt.storage.put(f"_attempts/{attempt.run}/tables/{name}/part-0.parquet", name)


def test_tables_appear_in_their_place_only_with_the_commit(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    with Attempt(storage, dt.date(2026, 11, 1), "k") as attempt:
        stage(attempt, "labels")
        assert not (tmp_path / "labels").exists()
        attempt.commit(**FACTS)
    (manifest,) = list_committed(storage)
    assert list_files(tmp_path) == [
        f"labels/dt=2026-11-01/run={manifest.run}/part-0.parquet",
        f"runs/2026-11-01/{manifest.run}.json",
    ]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_attempt_that_fails_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    storage = Storage(str(tmp_path))
    with pytest.raises(error), Attempt(storage, dt.date(2026, 11, 1), "k") as attempt:
        stage(attempt, "labels")
        storage.put(f"data_docs/dt=2026-11-01/run={attempt.run}/index.html", "")
        raise error
    assert list_files(tmp_path) == []


def test_an_interrupt_just_after_the_commit_does_not_undo_it(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    with pytest.raises(KeyboardInterrupt), Attempt(storage, dt.date(2026, 11, 1), "k") as attempt:
        stage(attempt, "labels")
        attempt.commit(**FACTS)
        raise KeyboardInterrupt
    (manifest,) = list_committed(storage)
    assert storage.get(f"{manifest.tables['labels'].path}/part-0.parquet") == "labels"


def test_an_attempt_that_is_being_claimed_is_kept(tmp_path: Path) -> None:
    storage, folder = Storage(str(tmp_path)), tmp_path / "_attempts" / f"new-1.{name_process()}.part"
    folder.mkdir(parents=True)
    assert find_removable(storage, keep=1, hours=0).orphans == ()
    (folder / "owner.json").write_text("{")
    assert remove_leftovers(storage) == []
    assert find_removable(storage, keep=1, hours=0).orphans == ()
    assert folder.exists()


# Killed at a call while it opens or leaves an attempt.
KILLED = """
import datetime as dt, os, pathlib, signal, sys
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.storage import Storage

method, call = sys.argv[2], int(sys.argv[3])
original, calls = getattr(Storage, method), []

def die_at_call(self, *values):
    calls.append(values)
    if len(calls) == call:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, *values)

class Files:  # deletes the content of a folder, then is killed
    def __init__(self, files):
        self.files = files
    def __getattr__(self, name):
        return getattr(self.files, name)
    def delete_dir(self, path):
        for file in pathlib.Path(path).iterdir():
            file.unlink()
        os.kill(os.getpid(), signal.SIGKILL)

storage = Storage(sys.argv[1])
if method == "delete":
    storage._files = Files(storage._files)
else:
    setattr(Storage, method, die_at_call)
with Attempt(storage, dt.date(2026, 11, 1), "dead"):
    pass
"""


@pytest.mark.parametrize(
    ("method", "call"), [("_write", 1), ("_sync", 1), ("move", 1), ("move", 2), ("_remove", 1), ("delete", 1)]
)
def test_a_process_killed_while_it_opens_or_leaves_an_attempt_leaves_nothing_for_long(
    tmp_path: Path, method: str, call: int
) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), method, str(call)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    storage = Storage(str(tmp_path))
    (left,) = storage.list("_attempts")
    assert find_removable(storage, keep=1, hours=24).orphans[:1] == (left,)
    with Attempt(storage, dt.date(2026, 11, 2), "next") as attempt:
        assert list(storage.list("_attempts")) == [f"_attempts/{attempt.run}"]
    assert list(storage.list("_attempts")) == []


def test_a_run_is_live_although_the_clock_was_set_back(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    runs = []
    for year in (2999, 0):
        with Attempt(storage, dt.date(2026, 11, 1), "key") as attempt:
            manifest = attempt.commit(**FACTS)
        runs.append(manifest.run)
        if year:  # as if the clock had been ahead then
            later = manifest.model_copy(update={"committed_at": f"{year}-01-01T00:00:00.000000+00:00"})
            storage.put(manifest_path(later.dt, later.run), later.model_dump_json())
    assert [m.run for m in list_committed(storage)] == runs[::-1]
    assert list_committed(storage)[0].committed_at == "2999-01-01T00:00:00.000001+00:00"


def test_temporary_folders_of_others_are_neither_read_nor_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = name_process().replace(f"-{os.getpid()}-", "-999999999-")
    for name in ("assay-own", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "owner.json").write_text(json.dumps({"process": ended}))
    (tmp_path / "assay-link").symlink_to(tmp_path / "elsewhere")
    with monkeypatch.context() as other:
        other.setattr(os, "getuid", lambda: 12345)
        assert remove_abandoned_folders() == []
    assert remove_abandoned_folders() == [str(tmp_path / "assay-own")]
    assert (tmp_path / "elsewhere" / "owner.json").exists()
