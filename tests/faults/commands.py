"""The real command, in a process of its own or, where the fault does not end the process, in one that is warm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.faults.plan import Plan, count_calls

ROOT = Path(__file__).parents[2]
TIMEOUT = 900
# Java and its compiled code outlive a command: the next one in the same process takes a quarter of the time.
SERVER = """
import json, os, sys
from jobs import cli
answers = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    request = json.loads(line)
    for number, name in ((1, "out"), (2, "err")):
        target = os.open(os.path.join(request["output"], name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(target, number)
        os.close(target)
    code = cli.invoke(cli.assay, request["words"])
    sys.stdout.flush()
    sys.stderr.flush()
    print(code, file=answers, flush=True)
"""


@dataclass(frozen=True)
class Finished:
    """A command that ended: its exit code, negative for a signal, and its output."""

    code: int
    output: Path
    calls: int = 0  # that its plan was about

    @property
    def out(self) -> str:
        return (self.output / "out").read_text(errors="replace")

    @property
    def err(self) -> str:
        return (self.output / "err").read_text(errors="replace")


@dataclass(frozen=True)
class Place:
    """Where a command runs: its folders for temporary files and Spark's files, and the page of its plan."""

    folder: Path
    shim: Path | None

    @property
    def page(self) -> Path:
        return self.folder / "plan"

    def build_environment(self) -> Mapping[str, str]:
        for folder in (self.folder / "tmp", self.folder / "local"):
            folder.mkdir(parents=True, exist_ok=True)
        # With bytecode: a command starts three processes of Python, and each would compile our modules again.
        dropped = ("SPARK_", "PYSPARK_", "PYTHONDONTWRITEBYTECODE")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
        places = {"TMPDIR": str(self.folder / "tmp"), "SPARK_LOCAL_DIRS": str(self.folder / "local")}
        preload = {} if self.shim is None else {"LD_PRELOAD": str(self.shim), "FAULT_PLAN": str(self.page)}
        return kept | places | preload | {"PYTHONPATH": str(ROOT)}

    def list_files(self) -> set[str]:
        """The temporary files and folders there are."""
        return {
            f"{path.parent.name}/{path.name}" for name in ("tmp", "local") for path in (self.folder / name).glob("*")
        }


class FreshCommand:
    """A command in a process of its own, and its children, which are one process group."""

    def __init__(self, words: Sequence[str], place: Place, output: Path, plan: Plan) -> None:
        self.output = output
        environment = place.build_environment()
        plan.write(place.page)
        with (output / "out").open("w") as out, (output / "err").open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jobs.evaluate", *words],
                cwd=place.folder,
                env=environment,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

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
        wait_for_group(self.process.pid)
        return Finished(code, self.output)


class WarmProcess:
    """A process that runs one command after the other, each through the door of the console command."""

    def __init__(self, place: Place, wrapper: Sequence[str] = ()) -> None:
        self.place = place
        environment = place.build_environment()
        Plan().write(place.page)
        self.process = subprocess.Popen(
            [*wrapper, sys.executable, "-c", SERVER],
            cwd=place.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(self, words: Sequence[str], output: Path, plan: Plan) -> WarmCommand:
        """Start a command; the plan is about this one only."""
        assert self.process.stdin is not None
        for name in ("out", "err"):
            (output / name).touch()
        plan.write(self.place.page)
        self.process.stdin.write(json.dumps({"words": ["evaluate", *words], "output": str(output)}) + "\n")
        self.process.stdin.flush()
        return WarmCommand(self, output)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        """End the process as a command ends, and wait for its children."""
        Plan().write(self.place.page)
        with suppress(BrokenPipeError):
            self.process.communicate(timeout=TIMEOUT)
        wait_for_group(self.process.pid)

    def kill(self) -> None:
        """Kill the process and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=TIMEOUT)
        wait_for_group(self.process.pid)


@dataclass(frozen=True)
class WarmCommand:
    """A command that runs in a warm process."""

    server: WarmProcess
    output: Path

    def wait(self) -> Finished:
        """Wait for the end of the command, not of its process."""
        assert self.server.process.stdout is not None
        line = self.server.process.stdout.readline()
        if not line:  # the process has ended
            return Finished(self.server.process.wait(timeout=TIMEOUT), self.output)
        calls = count_calls(self.server.place.page)
        Plan().write(self.server.place.page)
        return Finished(int(line), self.output, calls)


def wait_for_group(group: int) -> None:
    """Wait until no process of a group is left."""
    deadline = time.monotonic() + 120
    while _has_processes(group):
        if time.monotonic() > deadline:
            raise TimeoutError("children of the command are still running")
        time.sleep(0.05)


def _has_processes(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
