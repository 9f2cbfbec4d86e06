"""A run that lacks something: space in the warehouse, space in Spark's local folder, an answer of MLflow."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pipelines.warehouse.runs import Manifest
from tests.faults.commands import Finished, Place, WarmProcess
from tests.faults.plan import Plan
from tests.faults.servers import serve_nothing

SIZE = 24 * 2**20  # bytes of each small disk
SECONDS = 2  # that tracking may take


@dataclass
class SmallDisks:
    """A warm process whose warehouse and local folder are on small disks, which only it and its holder see."""

    demo: Path
    folder: Path
    holder: int
    process: WarmProcess
    count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def evaluate(self, *values: str) -> Finished:
        output = self.folder / f"output-{next(self.count)}"
        output.mkdir()
        words = ["--config", str(self.demo / "demo.yaml"), "--date", "2026-11-01", "--force"]
        words += [word for value in (f"warehouse={self.folder}/warehouse", *values) for word in ("--set", value)]
        return self.process.start(words, output, Plan()).wait()

    def see(self, name: str) -> Path:
        """A folder as the process sees it."""
        return Path(f"/proc/{self.holder}/root{self.folder}/{name}")

    def read_live_run(self) -> Manifest:
        paths = self.see("warehouse").glob("runs/2026-11-01/*.json")
        return max((Manifest.model_validate_json(path.read_text()) for path in paths), key=lambda m: m.committed_at)

    @contextmanager
    def fill(self, name: str, *, left: int) -> Iterator[None]:
        """Fill a disk up to some bytes, and free it again."""
        ballast = self.see(name) / "ballast"
        space = os.statvfs(ballast.parent)
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - left)
        try:
            yield
        finally:
            ballast.unlink()


@pytest.fixture(scope="module")
def disks(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisks]:
    """The disks are mounted in a name space of their own: no rights are needed, and nothing stays mounted."""
    folder = tmp_path_factory.mktemp("small")
    for name in ("warehouse", "local"):
        (folder / name).mkdir()
    mounts = " && ".join(f"mount -t tmpfs -o size={SIZE} tmpfs {folder / name}" for name in ("warehouse", "local"))
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"{mounts} && echo ok && exec sleep 3600"]
    with subprocess.Popen(unshare, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stderr is not None
        if holder.stdout.readline() != "ok\n":
            pytest.skip(f"this machine lets no user mount a tmpfs: {holder.stderr.read()}")
        enter = ("nsenter", f"--target={holder.pid}", "--user", "--mount", "--preserve-credentials", "--wd=/")
        process = WarmProcess(Place(folder, None), enter)
        try:
            small = SmallDisks(demo, folder, holder.pid, process)
            assert small.evaluate().code == 0
            yield small
        finally:
            process.close()
            holder.terminate()


@pytest.mark.parametrize("left", [0, 200_000])
def test_a_full_warehouse_exits_with_5_and_leaves_the_former_run_live(disks: SmallDisks, left: int) -> None:
    former = disks.read_live_run()
    with disks.fill("warehouse", left=left):
        refused = disks.evaluate()
    assert refused.code == 5, refused.err
    assert f"{disks.folder}/warehouse" in refused.err and "No space left on device" in refused.err
    assert "Traceback" not in refused.err
    assert disks.read_live_run() == former
    again = disks.evaluate()
    assert again.code == 0, again.err
    assert disks.read_live_run().run != former.run
    assert count_rows(disks.read_live_run()) == count_rows(former)
    assert list(disks.see("warehouse").glob("_attempts/*")) == [], "what the failed run wrote is removed"


@pytest.mark.parametrize("left", [0, 2_000_000])
def test_a_full_local_disk_exits_with_5_and_names_it(disks: SmallDisks, left: int) -> None:
    former = disks.read_live_run()
    with disks.fill("local", left=left):
        refused = disks.evaluate()
    assert refused.code == 5, refused.err
    assert f"{disks.folder}/local" in refused.err and "full" in refused.err
    assert "Traceback" not in refused.err
    assert disks.read_live_run() == former
    again = disks.evaluate()
    assert again.code == 0, again.err
    assert disks.read_live_run().run != former.run


def test_an_mlflow_that_accepts_and_never_answers_delays_a_run_by_its_limit(disks: SmallDisks) -> None:
    with serve_nothing() as address:
        done = disks.evaluate("tracking.enabled=true", f"tracking.uri={address}", f"tracking.seconds={SECONDS}")
        ended = time.time()
    assert done.code == 0, done.err
    assert "mlflow could not be reached" in done.err
    manifest = disks.read_live_run()
    after_commit = ended - dt.datetime.fromisoformat(manifest.committed_at).timestamp()
    assert SECONDS < after_commit < SECONDS + 60, "report and summary come after the commit too"
    assert [path.stem for path in disks.see("warehouse").glob("tracking/pending/*")] == [manifest.run]


def count_rows(manifest: Manifest) -> dict[str, int]:
    return {name: record.rows for name, record in manifest.tables.items()}
