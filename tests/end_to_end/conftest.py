"""Run Assay as its users do: in separate processes."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.judgments import write

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

Run = Callable[..., subprocess.CompletedProcess[str]]
Command = Sequence[str | Path]

# The exit code of each command ends its output, on both streams.
IN_TURN = """
import json, sys
from jobs import cli
for words in json.load(sys.stdin):
    code = cli.invoke(cli.assay, words[1:])
    for stream in (sys.stdout, sys.stderr):
        print(f"\\n= {code}", file=stream, flush=True)
"""


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    returncode: int
    stdout: str
    stderr: str


InTurn = Callable[[Sequence[Command]], list[CommandResult]]


@pytest.fixture
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


@pytest.fixture
def in_turn(environment: dict[str, str]) -> InTurn:
    """Run several commands in one process, so that Java starts once."""

    def call(commands: Sequence[Command]) -> list[CommandResult]:
        done = subprocess.run(
            [sys.executable, "-c", IN_TURN],
            input=json.dumps([[str(word) for word in command] for command in commands]),
            cwd=ROOT,
            env=environment | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        out, err = (re.split(r"\n= (\d+)\n", stream) for stream in (done.stdout, done.stderr))
        codes = [int(code) for code in out[1::2]]
        assert len(codes) == len(commands), done.stderr
        return [CommandResult(*parts) for parts in zip(codes, out[:-1:2], err[:-1:2], strict=True)]

    return call


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
        "spark.driver.extraJavaOptions: '-XX:TieredStopAtLevel=1'}}\n",
        encoding="utf-8",
    )
    return folder
