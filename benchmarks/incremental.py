"""Time of a label run over a window of days: from scratch, and where all days but the last are known.

python -m benchmarks.incremental --impressions 200000 --days 28

Simulates a log with one folder per day, commits the window that ends a day before the last one, and then times the run
of the last day, with all of its checks: incrementally and from scratch, in a session of its own and in a warm one. Wall
time varies by load, so processor time is printed too. At the end the counts must be equal, and the labels to 1e-9.
"""

from __future__ import annotations

import argparse
import datetime as dt
import shutil
import tempfile
import time
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from benchmarks.memory import measure_processor_seconds, watch_peaks
from jobs.support.session import open_session
from pipelines.config.model import Config
from pipelines.config.spark import SparkSettings
from pipelines.label import label
from pipelines.simulation.settings import SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.tables import read_table

SHOWN = 10
FIRST = dt.date(2026, 1, 5)
NAME = "assay benchmark incremental"
ROUNDING = 1e-9


@dataclass(frozen=True)
class Timing:
    """One timed run."""

    wall: float
    processor: float
    manifest: Manifest

    def compare(self, scratch: Timing) -> str:
        """The shares of the time from scratch."""
        return f"{self.wall / scratch.wall:.1%} of the time, {self.processor / scratch.processor:.1%} of processor time"


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
        _compare_results(spark, folder, cold.manifest, warm_scratch.manifest)
        _restore(folder)
        warm = _time(spark, folder, "incremental", last, days, "incremental, warm")
    print(f"warm: {warm.compare(warm_scratch)}", flush=True)
    _restore(folder)
    with open_session(settings, NAME) as spark:
        cold_scratch = _time(spark, folder, "scratch", last, days, "from scratch, cold")
    print(f"cold: {cold.compare(cold_scratch)}", flush=True)


def _compare_results(spark: SparkSession, folder: Path, incremental: Manifest, scratch: Manifest) -> None:
    """Raise unless the counts are equal, and the labels to rounding."""
    for name in ("read", "kept", "dropped", "attributions"):
        if incremental.labels[name] != scratch.labels[name]:
            raise AssertionError(f"{name} differs: {incremental.labels[name]}, from scratch {scratch.labels[name]}")
    # Of these runs: the warehouse of the incremental one also has the window before.
    runs = {"incremental": incremental.run, "scratch": scratch.run}
    tables = {
        kind: read_table(spark, str(folder / kind), "labels").where(F.col("run") == run) for kind, run in runs.items()
    }
    numbers = [name for name, kind in tables["scratch"].dtypes if kind in {"double", "float"}]
    exact = [name for name in tables["scratch"].columns if name not in {*numbers, "query_id", "doc_id", "dt", "run"}]
    one, two = (table.alias(kind) for kind, table in tables.items())
    both = one.join(two, on=["query_id", "doc_id"], how="full")
    difference = F.greatest(
        *[F.coalesce(F.abs(F.col(f"incremental.{name}") - F.col(f"scratch.{name}")), F.lit(0.0)) for name in numbers]
    )
    same_nulls = [F.col(f"incremental.{n}").isNull() == F.col(f"scratch.{n}").isNull() for n in numbers]
    same = [F.col(f"incremental.{name}").eqNullSafe(F.col(f"scratch.{name}")) for name in exact]
    unequal = F.when(reduce(Column.__and__, [*same, *same_nulls]), 0).otherwise(1)
    row = both.agg(F.count("*").alias("rows"), F.max(difference).alias("largest"), F.sum(unequal).alias("unequal"))
    figures = row.collect()[0]
    print(f"{figures.rows:,} labels, largest difference {figures.largest:.1e}, {figures.unequal} unequal", flush=True)
    if figures.unequal or figures.largest > ROUNDING:
        raise AssertionError("the labels differ from those from scratch")


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


def _time(spark: SparkSession, folder: Path, kind: str, date: dt.date, days: int, what: str) -> Timing:
    log = {name: {"path": f"{folder}/{name}/{{date}}", "days": days} for name in ("impressions", "interactions")}
    config = Config.model_validate(
        {"inputs": log, "warehouse": str(folder / kind), "labels": {"incremental": kind == "incremental"}}
    )
    start, spent = time.monotonic(), measure_processor_seconds()
    with watch_peaks() as peaks:
        manifest = label(spark, config, date).manifest
    seconds, spent = time.monotonic() - start, measure_processor_seconds() - spent
    stages = ", ".join(f"{name} {value:.1f}" for name, value in manifest.seconds.items())
    print(
        f"{what}: {seconds:.1f} s ({stages}), {spent:.0f} s of processor time; "
        f"{manifest.labels['read']['impressions']:,} impressions; "
        f"{peaks['driver (JVM)']:,} MB in Java, {peaks.get('worker (Python)', 0):,} MB in the largest worker",
        flush=True,
    )
    return Timing(seconds, spent, manifest)


if __name__ == "__main__":
    main()
