"""Time of a label run over a window of days: from scratch, and where all days but the last are known.

python -m benchmarks.incremental --impressions 200000 --days 28

Simulates a log with one folder per day, commits the window that ends a day before the last one, and then times the run
of the last day, with all of its checks: incrementally and from scratch, in the same session and each in a new one.
"""

from __future__ import annotations

import argparse
import datetime as dt
import shutil
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.support.session import open_session
from pipelines.config.model import Config
from pipelines.config.spark import SparkSettings
from pipelines.label import label
from pipelines.simulation.settings import SimulationSettings
from pipelines.simulation.simulate import simulate

SHOWN = 10
FIRST = dt.date(2026, 1, 5)


def main() -> None:
    """Measure and print one line per run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impressions", type=int, default=200_000, help="per day")
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--queries", type=int, default=5_000)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--folder", help="where to keep the log and the warehouses; a temporary folder by default")
    arguments = parser.parse_args()
    folder = Path(arguments.folder or tempfile.mkdtemp(prefix="incremental-"))
    try:
        measure(folder, arguments.impressions, arguments.days, arguments.queries, arguments.memory)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)


def measure(folder: Path, impressions: int, days: int, queries: int, memory: str) -> None:
    """Time the run of the last day in all four ways."""
    partitions = str(8 + days * impressions // 500_000)
    settings = {"spark.driver.memory": memory, "spark.sql.shuffle.partitions": partitions}
    spark_settings = SparkSettings(master="local[2]", settings=settings)
    last = FIRST + dt.timedelta(days=days)
    with open_session(spark_settings, "assay benchmark incremental") as spark:
        _write_log(spark, folder, impressions, days, queries)
        _time(spark, folder, "incremental", last - dt.timedelta(days=1), days, "window before it, every day new")
        _copy_warehouse(folder)
        warm = _time(spark, folder, "incremental", last, days, "incremental, warm")
        warm_scratch = _time(spark, folder, "scratch", last, days, "from scratch, warm")
    print(f"warm: {warm / warm_scratch:.1%}", flush=True)
    for name in ("incremental", "scratch"):
        shutil.rmtree(folder / name)
    (folder / "before").rename(folder / "incremental")
    with open_session(spark_settings, "assay benchmark incremental") as spark:
        cold = _time(spark, folder, "incremental", last, days, "incremental, cold")
    with open_session(spark_settings, "assay benchmark incremental") as spark:
        cold_scratch = _time(spark, folder, "scratch", last, days, "from scratch, cold")
    print(f"cold: {cold / cold_scratch:.1%}", flush=True)


def _copy_warehouse(folder: Path) -> None:
    """Keep the state before the last day for the cold run; file times are part of no key of the warehouse."""
    shutil.copytree(folder / "incremental", folder / "before")


def _write_log(spark: SparkSession, folder: Path, impressions: int, days: int, queries: int) -> None:
    """A log with a folder per day, of one day more than a window has."""
    pages = impressions * (days + 1) // SHOWN
    log = simulate(spark, SimulationSettings(pages=pages, queries=queries, days=days + 1, start=FIRST.isoformat()))
    for name, rows in (("impressions", log.impressions), ("interactions", log.interactions)):
        if (folder / name).exists():
            continue
        dated = rows.withColumn("day", F.to_date("ts"))
        dated.repartition("day").write.partitionBy("day").parquet(str(folder / name))
        for part in (folder / name).glob("day=*"):
            part.rename(folder / name / part.name.removeprefix("day="))


def _time(spark: SparkSession, folder: Path, kind: str, date: dt.date, days: int, what: str) -> float:
    log = {name: {"path": f"{folder}/{name}/{{date}}", "days": days} for name in ("impressions", "interactions")}
    config = Config.model_validate(
        {"inputs": log, "warehouse": str(folder / kind), "labels": {"incremental": kind == "incremental"}}
    )
    start = time.monotonic()
    manifest = label(spark, config, date).manifest
    seconds = time.monotonic() - start
    stages = ", ".join(f"{name} {value:.1f}" for name, value in manifest.seconds.items())
    print(f"{what}: {seconds:.1f} s ({stages}); {manifest.labels['read']['impressions']:,} impressions", flush=True)
    return seconds


if __name__ == "__main__":
    main()
