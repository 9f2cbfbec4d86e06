"""Start Java for a local session: with an archive of loaded classes where there is one, and without its own messages.

`make setup` writes the archive (class-data sharing): Java then maps the classes of Spark instead of parsing them.
"""

from __future__ import annotations

import importlib.metadata
import io
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import IO

from schemas.errors import AssayError
from schemas.redact import redact

ARCHIVE = Path(sys.prefix) / "share" / "assay" / f"spark-{importlib.metadata.version('pyspark')}.jsa"
# What Java and Spark print at every start.
NOISE = (
    b"WARNING: Using incubator modules",
    b"Picked up ",
    b"Using Spark's default log4j profile",
    b"Setting default log level to",
    b"To adjust logging level use",
)
DUMP_SECONDS = 300


def build_archive_options(archive: Path = ARCHIVE) -> tuple[str, ...]:
    """Return the options to use the archive; none without one. Java ignores an archive of another Java or Spark."""
    if not archive.exists():
        return ()
    # Without a line in the output where the archive does not fit.
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")


def start_java(settings: Mapping[str, str]) -> None:
    """Start the JVM of this process, if there is none yet; what it prints at every start is dropped."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    conf = SparkConf(loadDefaults=False)
    for key, value in select_launch_settings(settings).items():
        conf.set(key, value)
    gateway = launch_gateway(conf, {"stderr": subprocess.PIPE})  # type: ignore[no-untyped-call]
    threading.Thread(target=forward_lines, args=(gateway.proc.stderr,), name="stderr of Java", daemon=True).start()
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def select_launch_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings for the command line of Java, which every user of the machine can read: those without secrets.

    The session gets all of them when Java runs. Options of Java, and what is needed to download jars, cannot wait.
    """
    return {
        key: value
        for key, value in settings.items()
        if key.endswith("JavaOptions") or key.startswith("spark.jars") or redact({key: value}) == {key: value}
    }


def forward_lines(lines: IO[bytes]) -> None:
    """Pass the lines that Java prints on to the error stream of this process, without those of every start."""
    with lines, suppress(ValueError, OSError):  # the stream of this process is closed
        for line in lines:
            if not line.startswith(NOISE):
                sys.stderr.write(line.decode(errors="replace"))
                sys.stderr.flush()


def stop_java() -> None:
    """End the JVM of this process and wait for it."""
    from pyspark import SparkContext

    gateway, SparkContext._gateway = SparkContext._gateway, None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=DUMP_SECONDS)


CONFIG = """
inputs:
  rankings: {{path: {folder}/rankings.csv, format: csv}}
  judgments: {{path: {folder}/judgments.csv, format: csv}}
warehouse: {folder}/warehouse
compare: {{baseline: a}}
tracking: {{enabled: false}}
spark: {{settings: {{spark.driver.extraJavaOptions: "-XX:ArchiveClassesAtExit={archive} -Xlog:disable"}}}}
"""


def write_archive(archive: Path = ARCHIVE) -> None:
    """Evaluate six rows and archive the classes that it loads; the archive appears when it is complete."""
    from jobs.cli import assay, invoke

    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.unlink(missing_ok=True)  # Java does not write one archive while it uses another
    with tempfile.TemporaryDirectory(dir=archive.parent) as place:
        folder, written = Path(place), Path(place) / archive.name
        rows = [f"{system},q,d{rank},{rank}" for system in "ab" for rank in (1, 2, 3)]
        (folder / "rankings.csv").write_text("\n".join(["system,query_id,doc_id,rank", *rows, ""]))
        (folder / "judgments.csv").write_text("query_id,doc_id,grade\nq,d2,1\n")
        (folder / "assay.yaml").write_text(CONFIG.format(folder=folder, archive=written))
        output = io.StringIO()
        with redirect_stdout(output), redirect_stderr(output):
            code = invoke(assay, ["evaluate", "--config", str(folder / "assay.yaml"), "--date", "2026-11-01"])
        if code != 0:
            raise AssayError(output.getvalue().strip()[-500:])
        stop_java()  # which writes the archive
        written.replace(archive)
