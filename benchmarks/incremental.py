"""Time of a label run over a window of days: from scratch, and where all days but the last are known.

python -m benchmarks.incremental --impressions 200000 --days 28

Simulates a log with one folder per day, commits the window that ends a day before the last one, and then times the run
of the last day, with all of its checks: incrementally and from scratch, in a session of its own and in a warm one.
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
NAME = "assay benchmark incremental"


def main() -> None:
    """Prepare the log and the window before the last day, then time the last day in all four ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impressions", type=int, default=200_000, help="per day")
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--queries", type=int, default=5_000)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--folder", help="where to keep log and warehouses for another call; default: a temporary one")
    parser.add_argument("--prepare", action="store_true", help="stop before anything is timed")
    arguments = parser.parse_args()
    partitions = str(8 + arguments.days * arguments.impressions // 500_000)
    settings = {"spark.driver.memory": arguments.memory, "spark.sql.shuffle.partitions": partitions}
    spark = SparkSettings(master="local[2]", settings=settings)
    folder = Path(arguments.folder or tempfile.mkdtemp(prefix="incremental-"))
    try:
        if not (folder / "before").exists():
            prepare(spark, folder, arguments.impressions, arguments.days, arguments.queries)
        if not arguments.prepare:
            measure(spark, folder, arguments.days)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)


def prepare(settings: SparkSettings, folder: Path, impressions: int, days: int, queries: int) -> None:
    """Simulate the log, and commit the window that ends a day before the last one."""
    with open_session(settings, NAME) as spark:
        _write_log(spark, folder, impressions, days, queries)
        _time(spark, folder, "incremental", _last_day(days) - dt.timedelta(days=1), days, "the window before, all new")
    (folder / "incremental").rename(folder / "before")


def measure(settings: SparkSettings, folder: Path, days: int) -> None:
    """Time the last day: cold in sessions of their own, warm after each other in the first of them."""
    last = _last_day(days)
    _restore(folder)
    with open_session(settings, NAME) as spark:
        cold = _time(spark, folder, "incremental", last, days, "incremental, cold")
        warm_scratch = _time(spark, folder, "scratch", last, days, "from scratch, warm")
        _restore(folder)
        warm = _time(spark, folder, "incremental", last, days, "incremental, warm")
    print(f"warm: {warm / warm_scratch:.1%}", flush=True)
    _restore(folder)
    with open_session(settings, NAME) as spark:
        cold_scratch = _time(spark, folder, "scratch", last, days, "from scratch, cold")
    print(f"cold: {cold / cold_scratch:.1%}", flush=True)


def _last_day(days: int) -> dt.date:
    return FIRST + dt.timedelta(days=days)


def _restore(folder: Path) -> None:
    """The warehouses as they were before the last day."""
    for name in ("incremental", "scratch"):
        shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(folder / "before", folder / "incremental")


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
