"""Time from a log to labels by size, compared with the denoise rules as plain SQL in DuckDB.

python -m benchmarks.label_scale --impressions 1000000 10000000 50000000
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

from benchmarks import label_rules
from benchmarks.memory import measure_peaks, measure_processor_seconds
from jobs.support.session import open_session
from pipelines.config.spark import SparkSettings
from pipelines.inputs.log_rows import LogRows
from pipelines.labels.build import build_labels
from pipelines.labels.settings import LabelSettings
from pipelines.simulation.settings import SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.checkpoint import build_checkpointer
from schemas.inputs import IMPRESSIONS, INTERACTIONS

SHOWN = 10


def main() -> None:
    """Measure every size in a session of its own and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impressions", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--memory", default="3g")
    arguments = parser.parse_args()
    measure_all(arguments.impressions, arguments.memory)


def measure_all(sizes: Sequence[int], memory: str = "3g") -> list[dict[str, float]]:
    """The figures of every size, each in a session of its own."""
    figures = []
    for impressions in sizes:
        partitions = str(8 + impressions // 500_000)
        settings = {"spark.driver.memory": memory, "spark.sql.shuffle.partitions": partitions}
        with open_session(SparkSettings(master="local[2]", settings=settings), "assay benchmark labels") as spark:
            figures.append(measure(spark, impressions))
        print(_format_figures(figures[-1]), flush=True)
    return figures


def measure(spark: SparkSession, impressions: int) -> dict[str, float]:
    """Rows per second from files to published labels, and the ratio to the rules alone in DuckDB."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        _write_log(spark, impressions, folder)
        simulating = time.monotonic() - start
        start, processor = time.monotonic(), measure_processor_seconds()
        rows = _build_labels(spark, Path(folder))
        ours, processor = time.monotonic() - start, measure_processor_seconds() - processor
        peaks = measure_peaks()
        # In a process of its own: the memory of this one is the driver's.
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            theirs = alone.apply(_apply_rules, (folder,))
    return {
        "impressions": rows,
        "simulation_seconds": simulating,
        "seconds": ours,
        "processor_seconds": processor,
        "duckdb_seconds": theirs,
        "driver_megabytes": peaks["driver (Python)"],
        "java_megabytes": peaks["driver (JVM)"],
        "worker_megabytes": peaks["worker (Python)"],
    }


def _write_log(spark: SparkSession, impressions: int, folder: str) -> None:
    queries = max(1_000, impressions // 2_000)
    log = simulate(spark, SimulationSettings(pages=impressions // SHOWN, queries=queries))
    log.impressions.write.parquet(f"{folder}/impressions")
    log.interactions.write.parquet(f"{folder}/interactions")


def _apply_rules(folder: str) -> float:
    start = time.monotonic()
    with duckdb.connect(config={"threads": 2}) as connection:
        for name, draw in (("impressions", ", hash(serp_id) AS draw"), ("interactions", "")):
            connection.execute(f"CREATE VIEW {name} AS SELECT *{draw} FROM read_parquet('{folder}/{name}/*.parquet')")
        label_rules.apply_rules(connection)
        for query in (label_rules.CELLS, label_rules.USERS, label_rules.DROPS):
            connection.execute(query).to_arrow_table()
    return time.monotonic() - start


def _format_figures(figures: dict[str, float]) -> str:
    rows, seconds, duckdb_seconds = figures["impressions"], figures["seconds"], figures["duckdb_seconds"]
    return (
        f"{rows:,} impressions, simulated in {figures['simulation_seconds']:.0f} s: {seconds:.1f} s to labels, "
        f"{rows / seconds:,.0f} rows/s, {figures['processor_seconds']:.0f} s of processor time; "
        f"the rules alone in DuckDB {duckdb_seconds:.1f} s, ratio {seconds / duckdb_seconds:.1f}; "
        f"peak of the driver {figures['driver_megabytes']:,} MB in Python, "
        f"{figures['java_megabytes']:,} MB in Java, which also runs the tasks, "
        f"{figures['worker_megabytes']:,} MB in the largest Python worker"
    )


def _build_labels(spark: SparkSession, folder: Path) -> int:
    impressions, interactions = (spark.read.parquet(str(folder / name)) for name in ("impressions", "interactions"))
    rows = impressions.count()
    built = build_labels(
        LogRows(impressions, IMPRESSIONS),
        LogRows(interactions, INTERACTIONS),
        LabelSettings(),
        checkpoint=build_checkpointer(f"{folder}/checkpoints"),
        impressions_read=rows,
    )
    for name in ("labels", "propensities", "denoise_funnel"):
        getattr(built, name).write.parquet(str(folder / name))
    return rows


if __name__ == "__main__":
    main()
