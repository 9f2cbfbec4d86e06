"""What checking the inputs costs a run: its seconds without checks, and those of the checks alone.

    python -m benchmarks.quality [queries …]

The data is that of the other benchmark on Spark: 20 ranked documents and 10 labels per query.
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

DATE = dt.date(2026, 11, 1)


def configured(folder: Path, checks: str) -> Config:
    """A run on the generated files."""
    inputs = {name: {"path": str(folder / name)} for name in ("rankings", "queries")}
    inputs["judgments"] = {"path": str(folder / "labels")}
    settings = {"inputs": inputs, "metrics": METRICS, "segments": ["segment_of"], "checks": checks}
    return Config.model_validate(settings | {"warehouse": str(folder / "warehouse")})


def measure(spark: SparkSession, queries: int) -> dict[str, Any]:
    """Seconds of a run and of the checks of its inputs, taken from the same run."""
    folder = FOLDER / f"quality-{queries}"
    generate(spark, queries, folder)
    found: dict[str, Any] = {"rows": queries * DOCUMENTS}
    for checks in ("off", "fast", "full"):
        start = time.perf_counter()
        manifest = evaluate(spark, configured(folder, checks), DATE).manifest
        found[checks] = {"run": time.perf_counter() - start, "inspect": manifest.seconds["inspect"]}
        failing = [of["check"] for of in manifest.checks["failing"] if of["severity"] == "error"]
        assert not failing, f"clean data fails {failing}"
    shutil.rmtree(folder)
    return found


def main(sizes: tuple[int, ...] = (1_000_000,)) -> list[dict[str, Any]]:
    """Measure, print one line per size, and return the figures."""
    settings = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "16"}
    with session(Spark(master="local[2]", settings=settings), "assay benchmark quality") as spark:
        measure(spark, 1_000)  # the JVM compiles what it runs often, and Great Expectations is imported
        results = [measure(spark, size) for size in sizes]
    for result in results:
        run = result["off"]["run"]
        costs = ", ".join(
            f"{checks} {result[checks]['inspect']:.1f} s = {result[checks]['inspect'] / run:.1%}"
            for checks in ("fast", "full")
        )
        print(f"{result['rows']:,} ranking rows: a run without checks {run:.1f} s; checks of all inputs {costs}")
    return results


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or (1_000_000,))
