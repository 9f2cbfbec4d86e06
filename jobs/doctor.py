"""`assay doctor`."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.options import debug, output

if TYPE_CHECKING:
    from pipelines.config import Config

# Oldest version that works, and the first that is not known to.
PACKAGES = {
    "pyspark": ("4.0", "4.4"),
    "pandas": ("2.2", "3"),
    "pyarrow": ("18", "26"),
    "numpy": ("2", None),
    "mlflow": ("3.13", None),
    "pydantic": ("2.10", "3"),
}
JAVA = 17


@dataclass(frozen=True)
class Finding:
    """What one check found, and what to do about it."""

    check: str
    good: bool
    found: str
    mend: str = ""


@click.command("doctor")
@click.option("--config", "config", metavar="FILE", help="Also check its warehouse, its MLflow and its Spark settings.")
@click.option("--warehouse", metavar="PLACE", help="Also check that runs can be published there.")
@click.option("--no-spark", is_flag=True, help="Do not start Spark, which takes seconds.")
@output
@debug
def command(config: str | None, warehouse: str | None, no_spark: bool, output: str) -> None:
    """Check what Assay needs on this machine, and say how to mend what is missing.

    \b
    assay doctor
    assay doctor --config conf/demo.yaml
    """
    import json

    from schemas.errors import AssayError

    findings = []
    for finding in examine(config, warehouse, spark=not no_spark):
        findings.append(finding)
        if output == "table":
            click.secho(f"{'✓' if finding.good else '✗'} ", fg="green" if finding.good else "red", nl=False)
            click.echo(f"{finding.check}: {finding.found}" + (f"\n    {finding.mend}" if finding.mend else ""))
    if output == "json":
        click.echo(json.dumps([asdict(finding) for finding in findings]))
    bad = [finding.check for finding in findings if not finding.good]
    if bad:
        raise AssayError(
            f"{len(bad)} of {len(findings)} checks failed: {', '.join(bad)}", hint="mend them as said above"
        )


def examine(config: str | None, warehouse: str | None, *, spark: bool) -> Iterator[Finding]:
    """Every check that applies, one after the other, as it is done."""
    yield python()
    yield from packages()
    found_java = java()
    yield found_java
    loaded = None
    if config is not None:
        loaded, finding = _configuration(config)
        yield finding
    place = warehouse or (loaded.warehouse if loaded else None)
    if place is not None:
        yield _guarded("warehouse", lambda: _writable(place), "check the path and that you may write there")
    if loaded is not None and loaded.tracking.enabled:
        yield _guarded("MLflow", lambda: _mlflow(loaded), "start the server, or see tracking.uri in the configuration")
    if spark and found_java.good:
        mend = "set PYSPARK_PYTHON to a Python with these packages; --debug shows the trace"
        yield _guarded("Spark", lambda: _spark(loaded), mend)


def python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    return Finding("Python", good, f"{version} at {sys.executable}", "" if good else "install Python 3.11 or newer")


def packages() -> Iterator[Finding]:
    for name, (least, below) in PACKAGES.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, False, "not installed", "run `make setup`, or install Assay with its dependencies")
            continue
        good = _numbers(version) >= _numbers(least) and (below is None or _numbers(version) < _numbers(below))
        wanted = f"{least} or newer" + (f", below {below}" if below else "")
        yield Finding(name, good, version, "" if good else f"{wanted} is needed: `make setup` installs the locked one")


def java() -> Finding:
    """The Java that Spark would start."""
    if "SPARK_REMOTE" in os.environ:
        return Finding("Java", True, "not needed: SPARK_REMOTE names a server")
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home and Path(home, "bin", "java").exists() else shutil.which("java")
    install = (
        f"install Java {JAVA}, e.g. `apt-get install openjdk-{JAVA}-jre-headless` or `brew install openjdk@{JAVA}`"
    )
    if found is None:
        return Finding("Java", False, "none on the PATH or in JAVA_HOME", install)
    said = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    version = re.search(r'version "(\d+)(?:\.(\d+))?', said)
    if version is None:
        return Finding("Java", False, f"{found} does not tell its version", install)
    major = int(version[2] or 0) if version[1] == "1" else int(version[1])
    good = major >= JAVA
    return Finding("Java", good, f"{major} at {found}", "" if good else install)


def _configuration(path: str) -> tuple[Config | None, Finding]:
    from pipelines.configure import load
    from schemas.errors import ConfigurationError

    try:
        return load(path).config, Finding("configuration", True, path)
    except ConfigurationError as error:
        return None, Finding("configuration", False, str(error).strip(), "`docs/configuration.md` has every key")


def _guarded(name: str, check: Callable[[], str], mend: str) -> Finding:
    import logging

    try:
        return Finding(name, True, check())
    except Exception as error:
        logging.getLogger(__name__).debug("what led to it", exc_info=True)
        return Finding(name, False, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}", mend)


def _writable(place: str) -> str:
    import uuid

    from pipelines.storage import Storage

    storage, probe = Storage(place), f"_probe/{uuid.uuid4().hex}"
    storage.put(probe, "")
    storage.delete(probe)
    return f"{storage.uri} can be written to"


def _mlflow(config: Config) -> str:
    from pipelines.storage import Storage
    from pipelines.track import reach

    return reach(Storage(config.warehouse), config.tracking)


def _spark(config: Config | None) -> str:
    """Start a session and let a worker answer, since workers may run another Python than this one."""
    import pandas as pd

    from jobs.session import session
    from pipelines.config import Spark

    settings = Spark(master="local[1]") if config is None else config.spark
    with session(settings, "assay doctor") as spark:

        def told(rows: Iterable[pd.DataFrame]) -> Iterable[pd.DataFrame]:
            import sys

            import numpy
            import pyarrow

            for _ in rows:
                versions = f"numpy {numpy.__version__}, pyarrow {pyarrow.__version__}"
                yield pd.DataFrame({"told": [f"Python {sys.version.split()[0]} with {versions}"]})

        row = spark.range(1).mapInPandas(told, "told string").first()
        return f"{spark.version} runs; workers have {row['told'] if row else 'said nothing'}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
