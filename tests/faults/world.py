"""A small world to disturb: its data, its warehouse, the command, and the numbers of an undisturbed run."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from pipelines.warehouse.runs import Manifest, list_committed
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables
from tests.helpers.judgments import DATE, write

ROOT = Path(__file__).parents[2]
SECRET = "hunter2-of-the-fault-suite"
TIMEOUT = 900
# Tables whose rows must be those of an undisturbed run, and the columns that identify a row.
NUMBERS = {
    "query_metrics": ("system", "query_id"),
    "segment_metrics": ("system", "segment", "value", "metric"),
    "comparisons": ("baseline", "candidate", "segment", "value", "metric"),
}


@dataclass(frozen=True)
class Finished:
    """A command that ended: its exit code, negative for a signal, and its output."""

    code: int
    out: str
    err: str
    folder: Path  # of its temporary files


@dataclass
class World:
    """The folder of a series of faults; every command writes to the same warehouse."""

    folder: Path
    shim: Path | None = None
    seconds: float = 0.0  # of the undisturbed run
    digests: Mapping[str, str] = field(default_factory=dict)
    _commands: int = 0

    @classmethod
    def create(cls, folder: Path) -> World:
        """Write the data, build the shim where there is a compiler, and evaluate once undisturbed."""
        write(folder / "data")
        (folder / "faults.yaml").write_text(_render_config(folder), encoding="utf-8")
        world = cls(folder, shim=_build_shim(folder))
        start = time.monotonic()
        done = world.run()
        assert done.code == 0, done.err
        world.seconds = time.monotonic() - start
        world.digests = digest_run(world.storage, list_committed(world.storage)[0])
        return world

    @property
    def storage(self) -> Storage:
        return Storage(str(self.folder / "warehouse"))

    def start(self, *settings: str, debug: bool = False, **environment: str) -> RunningCommand:
        """Start the command in a process group of its own, with a folder of its own for temporary files."""
        self._commands += 1
        temporary = self.folder / "temporary" / str(self._commands)
        local, output = temporary / "local", self.folder / "output" / str(self._commands)
        local.mkdir(parents=True)
        output.mkdir(parents=True)
        words = [sys.executable, "-m", "jobs.evaluate", "--config", str(self.folder / "faults.yaml"), "--date", DATE]
        words += ["--force", "--log", "json", *(["--debug"] if debug else [])]
        words += [word for setting in settings for word in ("--set", setting)]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        places = {"TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(local), "PYTHONPATH": str(ROOT)}
        preload = {"LD_PRELOAD": str(self.shim)} if any(name.startswith("FAULT_") for name in environment) else {}
        with (output / "out").open("w") as out, (output / "err").open("w") as err:
            process = subprocess.Popen(
                words,
                cwd=self.folder,
                env=kept | places | preload | environment,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        return RunningCommand(process, temporary, output)

    def run(self, *settings: str, **environment: str) -> Finished:
        """Run the command to its end."""
        return self.start(*settings, debug=False, **environment).wait()


@dataclass(frozen=True)
class RunningCommand:
    """A command that was started, and the folders of its temporary files and its output."""

    process: subprocess.Popen[bytes]
    folder: Path
    output: Path

    def wait_until(self, condition: Callable[[str], bool]) -> bool:
        """Wait until what it wrote to stderr meets a condition; False where it ended before."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            if condition((self.output / "err").read_text(errors="replace")):
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.02)
        raise TimeoutError(f"the command did not end in {TIMEOUT} s")

    def kill(self, number: int = signal.SIGKILL, *, group: bool = True) -> None:
        """Send a signal to the command and, like a terminal, to its children."""
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)

    def wait(self) -> Finished:
        """Wait for the end of the command and of all its children."""
        code = self.process.wait(timeout=TIMEOUT)
        deadline = time.monotonic() + 120
        while _has_processes(self.process.pid):
            if time.monotonic() > deadline:
                raise TimeoutError("children of the command are still running")
            time.sleep(0.05)
        out, err = ((self.output / name).read_text(errors="replace") for name in ("out", "err"))
        return Finished(code, out, err, self.folder)


def digest_run(storage: Storage, manifest: Manifest) -> dict[str, str]:
    """A digest of each table with numbers, independent of the order of rows; raises where a row is missing."""
    digests = {}
    for name, keys in NUMBERS.items():
        table = pa.Table.from_batches(RunTables(storage, manifest).batches(name))
        if table.num_rows != manifest.tables[name].rows:
            raise ValueError(f"{name} has {table.num_rows} rows, its manifest says {manifest.tables[name].rows}")
        ordered = table.sort_by([(key, "ascending") for key in keys])
        digests[name] = hashlib.sha256(repr(ordered.to_pydict()).encode()).hexdigest()
    return digests


def _has_processes(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _build_shim(folder: Path) -> Path | None:
    """Build the library that fails on request; None where there is no C compiler or another system than Linux."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    target = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(target), str(source), "-ldl"], check=True)
    return target


def _render_config(folder: Path) -> str:
    inputs = "".join(
        f"  {name}: {{path: '{folder}/data/{name}/dt={{date}}'}}\n" for name in ("rankings", "judgments", "queries")
    )
    return (
        f"inputs:\n{inputs}warehouse: {folder}/warehouse\n"
        "metrics: [ndcg@10, mrr]\nsegments: [device]\ncompare: {baseline: bm25}\n"
        "checks: off\nreport: false\ntracking: {enabled: false, seconds: 3}\n"
        "spark: {master: 'local[2]', settings: {spark.sql.shuffle.partitions: 2, spark.driver.memory: 1g, "
        "spark.driver.extraJavaOptions: '-XX:TieredStopAtLevel=1'}}\n"
    )
