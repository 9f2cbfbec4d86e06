"""What checking costs a run, counted in two ways that must agree.

    python -m benchmarks.quality [queries …]

The checks of the inputs ride on the pass that counts the rows, so no stage has their seconds to itself. Their cost is
what the stages `check` and `inspect` take more than with `checks: off`; the whole run may take more by no more than
that and the checks of its results. Each way takes two turns and the better one counts, since in its first a JVM still
compiles. The data is that of the other benchmark on Spark: 20 ranked documents and 10 labels per query.
"""

from __future__ import annotations

import datetime as dt
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.on_spark import DOCUMENTS, FOLDER, METRICS, generate
from jobs.session import session
from pipelines.config import Config, Spark
from pipelines.evaluate import evaluate

KINDS = ("off", "fast", "full")
DATE = dt.date(2026, 11, 1)


def configured(folder: Path, checks: str) -> Config:
    """A run on the generated files."""
    inputs = {name: {"path": str(folder / name)} for name in ("rankings", "queries")}
    inputs["judgments"] = {"path": str(folder / "labels")}
    settings = {"inputs": inputs, "metrics": METRICS, "segments": ["segment_of"], "checks": checks}
    return Config.model_validate(settings | {"warehouse": str(folder / "warehouse")})


def turn(spark: SparkSession, folder: Path, checks: str) -> dict[str, float]:
    """Seconds of one run: of all of it, of its inputs until they are believed, and of the checks of its results."""
    start = time.perf_counter()
    manifest = evaluate(spark, configured(folder, checks), DATE, force=True).manifest
    run = time.perf_counter() - start
    failing = [of["check"] for of in manifest.checks["failing"] if of["severity"] == "error"]
    assert not failing, f"clean data fails {failing}"
    took = manifest.seconds
    return {"run": run, "inputs": took["check"] + took["inspect"], "results": took["inspect results"]}


def measure(spark: SparkSession, queries: int, turns: int = 2) -> dict[str, Any]:
    """The best seconds of a run with each kind of checks."""
    folder = FOLDER / f"quality-{queries}"
    generate(spark, queries, folder)
    found: dict[str, Any] = {"rows": queries * DOCUMENTS}
    for _ in range(turns):
        for checks in KINDS:
            now = turn(spark, folder, checks)
            found[checks] = {part: min(now[part], found.get(checks, now)[part]) for part in now}
    shutil.rmtree(folder)
    return found


def told(found: dict[str, Any]) -> str:
    """The cost of each kind of checks, as the part of a run without any."""
    off = found["off"]
    lines = [f"{found['rows']:,} ranking rows: a run without checks {off['run']:.1f} s"]
    for checks in KINDS[1:]:
        more = {part: found[checks][part] - off[part] for part in off}
        shares = ", ".join(f"{part} {more[part]:+.1f} s = {more[part] / off['run']:.1%}" for part in more)
        lines.append(f"  {checks}: {shares}")
    return "\n".join(lines)


def main(sizes: tuple[int, ...] = (1_000_000,)) -> list[dict[str, Any]]:
    """Measure, print one line per size, and return the figures."""
    settings = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "16"}
    with session(Spark(master="local[2]", settings=settings), "assay benchmark quality") as spark:
        measure(spark, 1_000)  # the JVM compiles what it runs often, and Great Expectations is imported
        results = [measure(spark, size) for size in sizes]
    for result in results:
        print(told(result))
    return results


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or (1_000_000,))
