"""How fast a log becomes labels as it grows, and how that compares with one join and one aggregate in DuckDB.

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

from benchmarks.memory import peak_megabytes
from jobs.session import session
from pipelines.config import Spark
from pipelines.hold import held_in
from pipelines.label import build_labels
from pipelines.label_config import LabelConfig
from pipelines.simulate import simulate
from pipelines.simulation.config import SimulationConfig

SHOWN = 10
AGGREGATE = """
    SELECT query_id, i.doc_id, position, count(*) AS impressions, count(c.doc_id) AS clicks
    FROM read_parquet('{folder}/impressions/*.parquet') i
    LEFT JOIN (SELECT DISTINCT serp_id, doc_id FROM read_parquet('{folder}/interactions/*.parquet')
               WHERE kind = 'click') c ON c.serp_id = i.serp_id AND c.doc_id = i.doc_id
    GROUP BY ALL
"""


def main() -> None:
    """Measure every size in a session of its own and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impressions", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--memory", default="3g")
    given = parser.parse_args()
    measure_all(given.impressions, given.memory)


def measure_all(sizes: Sequence[int], memory: str = "3g") -> list[dict[str, float]]:
    """The figures of every size, each in a session of its own."""
    figures = []
    for impressions in sizes:
        partitions = str(8 + impressions // 500_000)
        settings = {"spark.driver.memory": memory, "spark.sql.shuffle.partitions": partitions}
        with session(Spark(master="local[2]", settings=settings), "assay benchmark labels") as spark:
            figures.append(measure(spark, impressions))
        print(_line(figures[-1]), flush=True)
    return figures


def measure(spark: SparkSession, impressions: int) -> dict[str, float]:
    """Rows per second from files to published labels, and the ratio to DuckDB's part of the work."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        _draw(spark, impressions, folder)
        drawing = time.monotonic() - start
        start = time.monotonic()
        rows = _label(spark, Path(folder))
        ours = time.monotonic() - start
        peaks = peak_megabytes()
        # In a process of its own: the memory of this one is the driver's.
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            theirs = alone.apply(_aggregate, (folder,))
    return {
        "impressions": rows,
        "drawing_seconds": drawing,
        "seconds": ours,
        "duckdb_seconds": theirs,
        "driver_megabytes": peaks["driver (Python)"],
        "java_megabytes": peaks["driver (JVM)"],
    }


def _draw(spark: SparkSession, impressions: int, folder: str) -> None:
    queries = max(1_000, impressions // 2_000)
    log = simulate(spark, SimulationConfig(pages=impressions // SHOWN, queries=queries))
    log.impressions.write.parquet(f"{folder}/impressions")
    log.interactions.write.parquet(f"{folder}/interactions")


def _aggregate(folder: str) -> float:
    start = time.monotonic()
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute(f"CREATE TABLE counts AS {AGGREGATE.format(folder=folder)}")
    return time.monotonic() - start


def _line(of: dict[str, float]) -> str:
    return (
        f"{of['impressions']:,} impressions, drawn in {of['drawing_seconds']:.0f} s: {of['seconds']:.1f} s to labels, "
        f"{of['impressions'] / of['seconds']:,.0f} rows/s; DuckDB's join and aggregate alone "
        f"{of['duckdb_seconds']:.1f} s, ratio {of['seconds'] / of['duckdb_seconds']:.1f}; peak of the driver "
        f"{of['driver_megabytes']:,} MB in Python, {of['java_megabytes']:,} MB in Java, which works here too"
    )


def _label(spark: SparkSession, folder: Path) -> int:
    impressions, interactions = (spark.read.parquet(str(folder / name)) for name in ("impressions", "interactions"))
    built = build_labels(impressions, interactions, LabelConfig(), keep=held_in(f"{folder}/held"))
    for name in ("labels", "propensities", "denoise_funnel"):
        getattr(built, name).write.parquet(str(folder / name))
    return impressions.count()


if __name__ == "__main__":
    main()
