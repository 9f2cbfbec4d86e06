"""The cost of the checks of a run, measured in two ways that must agree.

    python -m benchmarks.quality [queries …]

The checks of the inputs are computed in the pass that counts the rows, so no stage has their time to itself. Their cost
is the extra time of the stages `check` and `inspect` over `checks: off`; the whole run may take longer by that and by
the checks of its outputs only. Each mode runs twice and the faster run counts, since the JVM compiles in the first. The
data is that of the other benchmark on Spark: 20 ranked documents and 10 labels per query.
"""

from __future__ import annotations

import datetime as dt
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.on_spark import DOCUMENTS, FOLDER, METRICS, generate_tables
from jobs.support.session import open_session
from pipelines.config.model import Config
from pipelines.config.spark import SparkSettings
from pipelines.evaluate import evaluate

KINDS = ("off", "fast", "full")
DATE = dt.date(2026, 11, 1)


def build_config(folder: Path, checks: str) -> Config:
    """A run on the generated files."""
    inputs = {name: {"path": str(folder / name)} for name in ("rankings", "queries")}
    inputs["judgments"] = {"path": str(folder / "labels")}
    settings = {"inputs": inputs, "metrics": METRICS, "segments": ["segment_of"], "checks": checks}
    return Config.model_validate(settings | {"warehouse": str(folder / "warehouse")})


def time_run(spark: SparkSession, folder: Path, checks: str) -> dict[str, float]:
    """Seconds of one run: in total, of counting and checking its inputs, and of checking its outputs."""
    start = time.perf_counter()
    manifest = evaluate(spark, build_config(folder, checks), DATE, force=True).manifest
    run = time.perf_counter() - start
    failing = [of["check"] for of in manifest.checks["failing"] if of["severity"] == "error"]
    assert not failing, f"clean data fails {failing}"
    took = manifest.seconds
    return {"run": run, "inputs": took["check"] + took["inspect"], "results": took["inspect results"]}


def measure(spark: SparkSession, queries: int, turns: int = 2) -> dict[str, Any]:
    """The fastest run with each mode of checks."""
    folder = FOLDER / f"quality-{queries}"
    generate_tables(spark, queries, folder)
    timings: dict[str, Any] = {"rows": queries * DOCUMENTS}
    for _ in range(turns):
        for checks in KINDS:
            now = time_run(spark, folder, checks)
            timings[checks] = {part: min(now[part], timings.get(checks, now)[part]) for part in now}
    shutil.rmtree(folder)
    return timings


def format_timings(timings: dict[str, Any]) -> str:
    """The cost of each mode of checks, as a share of a run without checks."""
    off = timings["off"]
    lines = [f"{timings['rows']:,} ranking rows: a run without checks {off['run']:.1f} s"]
    for checks in KINDS[1:]:
        more = {part: timings[checks][part] - off[part] for part in off}
        shares = ", ".join(f"{part} {more[part]:+.1f} s = {more[part] / off['run']:.1%}" for part in more)
        lines.append(f"  {checks}: {shares}")
    return "\n".join(lines)


def main(sizes: tuple[int, ...] = (1_000_000,)) -> list[dict[str, Any]]:
    """Measure, print one line per size, and return the figures."""
    settings = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "16"}
    with open_session(SparkSettings(master="local[2]", settings=settings), "assay benchmark quality") as spark:
        measure(spark, 1_000)  # the JVM compiles what it runs often, and Great Expectations is imported
        results = [measure(spark, size) for size in sizes]
    for result in results:
        print(format_timings(result))
    return results


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or (1_000_000,))
