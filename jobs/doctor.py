"""`assay doctor`."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.support.options import debug_option, output_option

if TYPE_CHECKING:
    from pipelines.config.model import Config

# The oldest supported version, and the first unsupported one, as in pyproject.toml.
PACKAGES = {
    "pyspark": ("4.1", "4.2"),
    "pandas": ("2.2", "3"),
    "pyarrow": ("18", "26"),
    "numpy": ("2", None),
    "mlflow": ("3.17", None),
    "pydantic": ("2.10", None),
}
JAVA = 17
MAX_DETAIL = 300  # characters of an error


@dataclass(frozen=True)
class Diagnosis:
    """The result of one check, and how to fix a failure."""

    check: str
    good: bool
    detail: str
    fix: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the fields under their published names."""
        return {"check": self.check, "good": self.good, "detail": self.detail, "fix": self.fix}


@click.command("doctor")
@click.option(
    "--config", "config", metavar="FILE", help="Also check its warehouse, tracking backend and Spark settings."
)
@click.option("--warehouse", metavar="PLACE", help="Also check that it is writable.")
@click.option("--no-spark", is_flag=True, help="Do not start Spark, which takes a few seconds.")
@output_option
@debug_option
def command(config: str | None, warehouse: str | None, no_spark: bool, output: str) -> None:
    """Check this machine for what Assay needs, and print how to fix what is missing.

    \b
    assay doctor
    assay doctor --config conf/demo.yaml
    """
    import json

    from schemas.errors import AssayError

    diagnoses = []
    for diagnosis in run_diagnostics(config, warehouse, spark=not no_spark):
        diagnoses.append(diagnosis)
        if output == "table":
            click.secho(f"{'✓' if diagnosis.good else '✗'} ", fg="green" if diagnosis.good else "red", nl=False)
            click.echo(f"{diagnosis.check}: {diagnosis.detail}" + (f"\n    {diagnosis.fix}" if diagnosis.fix else ""))
    if output == "json":
        click.echo(json.dumps([diagnosis.to_json() for diagnosis in diagnoses]))
    failed = [diagnosis.check for diagnosis in diagnoses if not diagnosis.good]
    if failed:
        raise AssayError(
            f"{len(failed)} of {len(diagnoses)} checks failed: {', '.join(failed)}", hint="fix them as printed above"
        )


def run_diagnostics(config: str | None, warehouse: str | None, *, spark: bool) -> Iterator[Diagnosis]:
    """Yield the result of each check that applies."""
    yield check_python()
    yield from check_packages()
    java = check_java()
    yield java
    loaded = None
    if config is not None:
        loaded, diagnosis = _check_configuration(config)
        yield diagnosis
    place = warehouse or (loaded.warehouse if loaded else None)
    if place is not None:
        yield _diagnose("warehouse", lambda: _check_warehouse(place), "check the path and the permission to write")
    if loaded is not None and loaded.tracking.enabled:
        yield _diagnose("MLflow", lambda: _check_tracking(loaded), "start the server, or fix tracking.uri")
    if spark and java.good:
        fix = "set PYSPARK_PYTHON to a Python with these packages; --debug shows the stack trace"
        yield _diagnose("Spark", lambda: _check_spark(loaded), fix)


def check_python() -> Diagnosis:
    """Check the version of Python."""
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    return Diagnosis("Python", good, f"{version} at {sys.executable}", "" if good else "install Python 3.11 or newer")


def check_packages() -> Iterator[Diagnosis]:
    """Check the versions of the main dependencies."""
    for name, (least, below) in PACKAGES.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Diagnosis(name, False, "not installed", "run `make setup`, or install Assay with its dependencies")
            continue
        number = _parse_version(version)
        good = number >= _parse_version(least) and (below is None or number < _parse_version(below))
        supported = f"{least} or newer" + (f", below {below}" if below else "")
        yield Diagnosis(
            name, good, version, "" if good else f"{supported} is needed: `make setup` installs the locked one"
        )


def check_java() -> Diagnosis:
    """Check the version of the Java that Spark starts."""
    if "SPARK_REMOTE" in os.environ:
        return Diagnosis("Java", True, "not needed: SPARK_REMOTE names a server")
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin", "java")) if home and Path(home, "bin", "java").exists() else shutil.which("java")
    install = (
        f"install Java {JAVA}, e.g. `apt-get install openjdk-{JAVA}-jre-headless` or `brew install openjdk@{JAVA}`"
    )
    if path is None:
        return Diagnosis("Java", False, "none on the PATH or in JAVA_HOME", install)
    text = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    version = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if version is None:
        return Diagnosis("Java", False, f"{path} does not print its version", install)
    major = int(version[2] or 0) if version[1] == "1" else int(version[1])
    good = major >= JAVA
    return Diagnosis("Java", good, f"{major} at {path}", "" if good else install)


def _check_configuration(path: str) -> tuple[Config | None, Diagnosis]:
    from pipelines.config.load import load_config
    from schemas.errors import ConfigurationError

    try:
        return load_config(path).config, Diagnosis("configuration", True, path)
    except ConfigurationError as error:
        return None, Diagnosis("configuration", False, str(error).strip(), "docs/configuration.md lists all keys")


def _diagnose(name: str, check: Callable[[], str], fix: str) -> Diagnosis:
    import logging

    from schemas.redact import cut_text

    try:
        return Diagnosis(name, True, check())
    except Exception as error:
        logging.getLogger(__name__).debug("the cause", exc_info=True)
        detail = cut_text(" ".join(str(error).split()), MAX_DETAIL)
        return Diagnosis(name, False, f"{type(error).__name__}: {detail}", fix)


def _check_warehouse(place: str) -> str:
    import uuid

    from pipelines.warehouse.storage import Storage

    storage, probe = Storage(place), f"_probe/{uuid.uuid4().hex}"
    storage.put(probe, "")
    storage.delete(probe)
    return f"{storage.uri} is writable"


def _check_tracking(config: Config) -> str:
    from pipelines.sharing.tracking.track import check_connection
    from pipelines.warehouse.storage import Storage

    return check_connection(Storage(config.warehouse), config.tracking)


def _check_spark(config: Config | None) -> str:
    """Start a session and ask a worker for its versions; workers may run another Python."""
    import pandas as pd

    from jobs.support.session import open_session
    from pipelines.config.spark import SparkSettings

    settings = SparkSettings(master="local[1]") if config is None else config.spark
    with open_session(settings, "assay doctor") as spark:

        def describe_worker(rows: Iterable[pd.DataFrame]) -> Iterable[pd.DataFrame]:
            import sys

            import numpy
            import pyarrow

            for _ in rows:
                versions = f"numpy {numpy.__version__}, pyarrow {pyarrow.__version__}"
                yield pd.DataFrame({"text": [f"Python {sys.version.split()[0]} with {versions}"]})

        row = spark.range(1).mapInPandas(describe_worker, "text string").first()
        return f"{spark.version} runs; workers have {row['text'] if row else 'no answer'}"


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
