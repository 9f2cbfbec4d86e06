"""Run Assay as its users do: in separate processes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.judgments import write

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

Run = Callable[..., subprocess.CompletedProcess[str]]
Command = Sequence[str | Path]

# Java and its compiled code outlive a command: the next one in the same process takes a quarter of the time.
WARM = """
import json, os, sys
from jobs import cli
if spark := json.loads(sys.argv[2]):
    from jobs.support.session import open_session
    from pipelines.config.spark import SparkSettings
    with open_session(SparkSettings(**spark), "warm", input_bytes=0):
        pass
answers = os.fdopen(int(sys.argv[1]), "w")
for line in sys.stdin:
    code = cli.invoke(cli.assay, json.loads(line))
    sys.stdout.flush()
    sys.stderr.flush()
    print(code, file=answers, flush=True)
"""


# Java of the process that all tests share is that of small runs, whatever command comes first. With more space for new
# objects it collects them rarely.
SHARED = {
    "master": "local[2]",
    "settings": {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-Xmn500m"},
}


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    returncode: int
    stdout: str
    stderr: str


InTurn = Callable[[Sequence[Command]], list[CommandResult]]


class WarmProcess:
    """A process that runs one command after the other, so that Java starts once; relative paths are in `work`.

    Java is started with the settings `spark`, or without them by the first command that needs it.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], spark: Mapping[str, Any] | None = None) -> None:
        self.files = [folder / name for name in ("out", "err")]
        self.work = folder / "work"
        self.work.mkdir()
        ours, theirs = os.pipe()
        with self.files[0].open("w") as out, self.files[1].open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", WARM, str(theirs), json.dumps(spark)],
                cwd=self.work,
                env={**environment, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                pass_fds=[theirs],
                text=True,
            )
        os.close(theirs)
        self.starts = [0, 0]
        self.answers = os.fdopen(ours, encoding="utf-8")

    def run(self, command: Command) -> CommandResult:
        """Run a command; what it printed includes what Java did meanwhile."""
        self.start(command)
        return self.wait()

    def start(self, command: Command) -> None:
        """Start a command, the next one after it has ended."""
        self.starts = [file.stat().st_size for file in self.files]
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([str(word) for word in command[1:]]) + "\n")
        self.process.stdin.flush()

    def read_output(self) -> list[str]:
        """What the last command has printed so far, to stdout and to stderr."""
        pairs = zip(self.files, self.starts, strict=True)
        return [file.read_bytes()[start:].decode(errors="replace") for file, start in pairs]

    def wait(self) -> CommandResult:
        """Wait for the end of the command that was started."""
        code = self.answers.readline()
        out, err = self.read_output()
        assert code, err
        return CommandResult(int(code), out, err)

    def close(self) -> None:
        """End the process, as a command ends."""
        self.process.communicate(timeout=600)
        self.answers.close()


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment of a user who has activated the virtual environment and nothing else."""
    dropped = ("PYSPARK_PYTHON", "SPARK_", "PYTHONPATH")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    return kept | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    """Run a command in the project's folder and capture its output."""

    def call(*command: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(part) for part in command],
            cwd=ROOT,
            env=environment | changes,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )

    return call


@pytest.fixture(scope="package")
def warm_process(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmProcess]:
    process = WarmProcess(tmp_path_factory.mktemp("warm"), environment, SHARED)
    yield process
    process.close()


@pytest.fixture
def in_turn(warm_process: WarmProcess) -> InTurn:
    """Run several commands in the process that all tests share."""
    return lambda commands: [warm_process.run(command) for command in commands]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a small data set with judgments, and a configuration with a warehouse."""
    folder = tmp_path_factory.mktemp("demo")
    write(folder / "data")
    (folder / "demo.yaml").write_text(
        f"extends: {ROOT / 'conf' / 'base.yaml'}\n"
        "inputs:\n"
        + "".join(
            f"  {name}: {{path: '{folder}/data/{name}/dt={{date}}'}}\n" for name in ("rankings", "judgments", "queries")
        )
        + f"warehouse: {folder}/warehouse\n"
        "segments: [device]\nchecks: off\n"
        "tracking: {enabled: false}\n"
        "spark: {master: 'local[2]', settings: {spark.sql.shuffle.partitions: 4, spark.driver.memory: 1g, "
        "spark.driver.extraJavaOptions: '-XX:TieredStopAtLevel=1 -Xmn300m'}}\n",
        encoding="utf-8",
    )
    return folder
