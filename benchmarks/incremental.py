"""Time of a label run over a window of days: from scratch, and where all days but the last are known.

python -m benchmarks.incremental --impressions 200000 --days 28

Simulates a log with one folder per day, commits the window that ends a day before the last one, and then times the run
of the last day, with all of its checks: incrementally and from scratch, each in a session as `assay label` opens it,
and once more in the same session. Wall time varies by load, so processor time is printed too. At the end the counts
must be equal, and the labels to 1e-9. With `--copies`, each page is logged several times, with other ids of page, user
and event: a large log without a long simulation.
"""

from __future__ import annotations

import argparse
import datetime as dt
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import reduce
from multiprocessing import get_context
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.memory import measure_processor_seconds, watch_peaks
from jobs.support.session import open_session
from pipelines.config.model import Config
from pipelines.config.spark import SparkSettings
from pipelines.label import label
from pipelines.plan import define_labelling, list_inputs, look_ahead
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
    parser.add_argument("--copies", type=int, default=1)
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
            prepare(spark, folder, arguments)
        if not arguments.prepare:
            measure(spark, folder, arguments.days)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)


def prepare(settings: SparkSettings, folder: Path, arguments: argparse.Namespace) -> None:
    """Simulate the log, and commit the window that ends a day before the last one."""
    days = arguments.days
    with open_session(settings, NAME) as spark:
        _write_log(spark, folder, arguments)
        config = _configure(folder, "incremental", days)
        _time(spark, config, _last_day(days) - dt.timedelta(days=1), "the window before, all new")
    (folder / "incremental").rename(folder / "before")


def measure(settings: SparkSettings, folder: Path, days: int) -> None:
    """Time the last day in both ways, each cold in a Java of its own, and then warm."""
    _restore(folder)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as apart:
        ways = [apart.submit(_measure_way, settings, folder, kind, days) for kind in ("incremental", "scratch")]
        incremental, scratch = (way.result() for way in ways)
    for name, one, other in zip(("cold", "warm"), incremental, scratch, strict=True):
        print(f"{name}: {one.compare(other)}", flush=True)
    with open_session(settings, NAME) as spark:
        _compare_results(spark, folder, incremental[1].manifest, scratch[1].manifest)


def _measure_way(settings: SparkSettings, folder: Path, kind: str, days: int) -> list[Timing]:
    """Time the last day in one way: in a new session, and again in the same one."""
    last, config = _last_day(days), _configure(folder, kind, days)
    local = look_ahead(define_labelling(config), last)
    size, spark_bytes = (None, None) if local is None else (local.bytes, local.spark_bytes)
    with open_session(settings, NAME, input_bytes=size, spark_bytes=spark_bytes) as spark:
        cold = _time(spark, config, last, f"{kind}, cold")
        _restore(folder, kind)
        return [cold, _time(spark, config, last, f"{kind}, warm")]


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


def _restore(folder: Path, *kinds: str) -> None:
    """The warehouses of these ways, by default of both, as they were before the last day."""
    for kind in kinds or ("incremental", "scratch"):
        shutil.rmtree(folder / kind, ignore_errors=True)
        if kind == "incremental":
            shutil.copytree(folder / "before", folder / kind)


def _write_log(spark: SparkSession, folder: Path, arguments: argparse.Namespace) -> None:
    """A log with a folder per day, of one day more than a window has."""
    days = arguments.days + 1
    pages = arguments.impressions * days // SHOWN // arguments.copies
    settings = SimulationSettings(pages=pages, queries=arguments.queries, days=days, start=FIRST.isoformat())
    log = simulate(spark, settings)
    for name, rows in (("impressions", log.impressions), ("interactions", log.interactions)):
        if (folder / name).exists():
            continue
        dated = _copy_rows(rows, arguments.copies).withColumn("day", F.to_date("ts"))
        dated.repartition("day").write.partitionBy("day").parquet(str(folder / name))
        for part in (folder / name).glob("day=*"):
            part.rename(folder / name / part.name.removeprefix("day="))


def _copy_rows(rows: DataFrame, copies: int) -> DataFrame:
    """The rows several times, the copies with other ids of page, user, session and event."""
    copied = rows.withColumn("copy", F.explode(F.sequence(F.lit(1), F.lit(copies))))
    for name in {"serp_id", "user_id", "session_id", "event_id"} & set(rows.columns):
        other = F.concat(name, F.lit("~"), "copy")
        copied = copied.withColumn(name, F.when(F.col("copy") == 1, F.col(name)).otherwise(other))
    return copied.drop("copy")


def _configure(folder: Path, kind: str, days: int) -> Config:
    log = {name: {"path": f"{folder}/{name}/{{date}}", "days": days} for name in ("impressions", "interactions")}
    return Config.model_validate(
        {"inputs": log, "warehouse": str(folder / kind), "labels": {"incremental": kind == "incremental"}}
    )


def _time(spark: SparkSession, config: Config, date: dt.date, what: str) -> Timing:
    start, spent = time.monotonic(), measure_processor_seconds()
    with watch_peaks() as peaks:
        manifest = label(spark, config, date, listings=list_inputs(config, date)).manifest
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
