"""Estimates and comparisons against a plain Spark mean over the same grouping sets, as a ratio in one run.

    python -m benchmarks.statistics --queries 1000000
    python -m benchmarks.statistics --queries 100000 --queries 200000 --queries 400000 --replicates 1000

Two systems, 14 metrics of which ten can be pooled, six segment columns with 40 values each. With several sizes, the
last lines say how time and memory grow from one to the next.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks.memory import list_descendants, measure_peaks
from jobs.support.session import open_session
from pipelines.comparison.compare import PValueRules, compare_systems
from pipelines.comparison.estimate import estimate_metrics, select_segment_metrics
from pipelines.config.spark import SparkSettings
from udfs.registry import POOL
from udfs.statistics.plan import Plan

METRICS = tuple(f"m{number:02d}" for number in range(14))
SEGMENTS = tuple(f"segment{number}" for number in range(6))
VALUES, FILES = 40, 8
PLAN = Plan(
    systems=("a", "b"),
    metrics=METRICS,
    pooled=METRICS[:10],
    segments=tuple((name,) for name in SEGMENTS),
    pairs=(("a", "b"),),
    judged=(None,) * len(METRICS),
)


def write(folder: Path, queries: int) -> None:
    """Query metrics as a run publishes them: the rows of a query one after the other, in several files."""
    random = np.random.default_rng(1)
    values = np.array([f"value {number}" for number in range(VALUES)])
    for part in range(FILES):
        n = queries // FILES
        both = {"query_id": [f"query {part * n + q:09d}" for q in range(n)]}
        columns: dict[str, object] = {name: np.repeat(ids, 2) for name, ids in both.items()}
        columns["system"] = np.tile(["a", "b"], n)
        columns["weight"] = np.repeat(np.ceil(20_000 / random.permutation(np.arange(1, n + 1)) ** 0.8), 2)
        columns |= {name: np.repeat(random.choice(values, n), 2) for name in SEGMENTS}
        for metric in METRICS:
            base, shift = random.random(n) * (random.random(n) < 0.8), random.normal(0.005, 0.1, n)
            columns[metric] = np.stack([base, np.clip(base + shift, 0, 1)], axis=1).ravel()
        columns |= {key + POOL: np.repeat(random.integers(1, 9, n).astype(float), 2) for key in PLAN.pooled}
        pq.write_table(pa.table(columns), folder / f"part-{part}.parquet")


def compute_plain_means(rows: DataFrame) -> None:
    """The reference: one mean per metric over the same grouping sets."""
    rows.createOrReplaceTempView("query_metrics_of_benchmark")
    sets = ", ".join(["(system)", *[f"(system, {name})" for name in SEGMENTS]])
    by = ", ".join(["system", *SEGMENTS])
    means = ", ".join(f"avg({metric})" for metric in METRICS)
    sql = f"SELECT {by}, {means} FROM query_metrics_of_benchmark GROUP BY {by} GROUPING SETS ({sets})"
    rows.sparkSession.sql(sql).write.format("noop").mode("overwrite").save()


def compute_estimates(rows: DataFrame, plan: Plan) -> None:
    """Averages with intervals and comparisons with t tests, as a run computes them."""
    estimates = estimate_metrics(rows, plan=plan).persist()
    compared = compare_systems(estimates, PValueRules(frozenset(METRICS), "holm", alpha=0.05))
    for table in (select_segment_metrics(estimates), compared):
        table.write.format("noop").mode("overwrite").save()
    estimates.unpersist()


@dataclass(frozen=True)
class Cost:
    """The wall time and the processor time of some work."""

    clock: float
    processor: float

    def against(self, yardstick: Cost) -> str:
        """This cost and its ratios to another."""
        ratios = (self.clock / yardstick.clock, self.processor / yardstick.processor)
        return f"{self.clock:7.1f} s  {ratios[0]:.2f} ×   processors {self.processor:7.1f} s  {ratios[1]:.2f} ×"


def measure_cost(work: Callable[[], None]) -> Cost:
    """The cost of some work; on a shared machine, processor time leaves the waiting out."""
    start, used = time.monotonic(), count_processor_seconds()
    work()
    return Cost(time.monotonic() - start, count_processor_seconds() - used)


def count_processor_seconds() -> float:
    """Seconds that this process, its JVM and the Python workers have computed, as Linux counts them."""
    ticks = 0
    for pid in (os.getpid(), *list_descendants(os.getpid())):
        with suppress(OSError):  # it may have ended since; its parent has its time
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(spark: SparkSession, queries: int, replicates: int, rounds: int) -> dict[str, float]:
    """Measure both in turns, so that other load affects both; the fastest round counts."""
    with tempfile.TemporaryDirectory() as folder:
        # In another process, so that the memory of this one is the driver's alone.
        writer = get_context("spawn").Process(target=write, args=(Path(folder), queries))
        writer.start()
        writer.join()
        rows = spark.read.parquet(folder)
        turns = [
            (measure_cost(lambda: compute_plain_means(rows)), measure_cost(lambda: compute_estimates(rows, PLAN)))
            for _ in range(rounds + 1)
        ]
        yardstick, estimates = (_find_fastest(costs) for costs in zip(*turns[1:], strict=True))
        click.echo(f"{queries:,} queries × 2 systems × {len(METRICS)} metrics, {len(SEGMENTS)} segments of {VALUES}")
        click.echo(f"plain means            {yardstick.against(yardstick)}")
        click.echo(f"all estimates          {estimates.against(yardstick)}")
        figures = {"queries": queries, "plain_seconds": yardstick.clock, "seconds": estimates.clock}
        if replicates:
            replicated = measure_cost(
                lambda: compute_estimates(rows, replace(PLAN, bootstrap=replicates, percentiles=True))
            )
            click.echo(f"{replicates:5,} replicates too   {replicated.against(yardstick)}")
            figures |= {"replicates": replicates, "seconds_with_replicates": replicated.clock}
            figures |= {"processor_seconds_with_replicates": replicated.processor}
        peaks = measure_peaks()
        click.echo(", ".join(f"{kind} {megabytes:,} MB" for kind, megabytes in peaks.items()))
        return figures | {f"megabytes of {kind}": megabytes for kind, megabytes in peaks.items()}


def describe_growth(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """The growth from one size to the next: the time of replicates, and the peak memory of the driver."""
    times = after["queries"] / before["queries"]
    grown = [f"from {before['queries']:,.0f} to {after['queries']:,.0f} queries ({times:.2f} ×):"]
    for name, key in (("clock", "seconds_with_replicates"), ("processors", "processor_seconds_with_replicates")):
        if key in after:
            grown.append(f"replicates {after[key] / before[key]:.2f} × by {name},")
    key = "megabytes of driver (Python)"
    return " ".join([*grown, f"driver (Python) {before[key]:,.0f} → {after[key]:,.0f} MB"])


def _find_fastest(costs: Sequence[Cost]) -> Cost:
    return Cost(min(c.clock for c in costs), min(c.processor for c in costs))


@click.command()
@click.option("--queries", "sizes", multiple=True, default=(1_000_000,), show_default=True, help="May be repeated.")
@click.option("--replicates", default=0, show_default=True, help="Bootstrap replicates to measure as well.")
@click.option("--rounds", default=2, show_default=True)
def main(sizes: tuple[int, ...], replicates: int, rounds: int) -> None:
    """Print the times, their ratio, and how they grow."""
    measure_sizes(sizes, replicates, rounds)


def measure_sizes(sizes: Sequence[int], replicates: int, rounds: int = 2) -> list[dict[str, float]]:
    """The figures of each size, in a session of their own."""
    with open_session(SparkSettings(master="local[2]"), "benchmark of statistics") as spark:
        figures = [measure(spark, queries, replicates, rounds) for queries in sizes]
    for before, after in pairwise(figures):
        click.echo(describe_growth(before, after))
    return figures


if __name__ == "__main__":
    main()
