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

from benchmarks.memory import descendants, peak_megabytes
from jobs.session import session
from pipelines.aggregate import aggregate
from pipelines.compare import compare
from pipelines.config import Spark
from pipelines.estimate import estimate
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


def plain(rows: DataFrame) -> None:
    """The yardstick: one mean per metric over the same grouping sets."""
    rows.createOrReplaceTempView("query_metrics_of_benchmark")
    sets = ", ".join(["(system)", *[f"(system, {name})" for name in SEGMENTS]])
    by = ", ".join(["system", *SEGMENTS])
    means = ", ".join(f"avg({metric})" for metric in METRICS)
    sql = f"SELECT {by}, {means} FROM query_metrics_of_benchmark GROUP BY {by} GROUPING SETS ({sets})"
    rows.sparkSession.sql(sql).write.format("noop").mode("overwrite").save()


def ours(rows: DataFrame, plan: Plan) -> None:
    """Averages with intervals and comparisons with t tests, as a run makes them."""
    estimates = estimate(rows, plan=plan).persist()
    compared = compare(estimates, family=METRICS, correction="holm", confidence=0.95)
    for table in (aggregate(estimates), compared):
        table.write.format("noop").mode("overwrite").save()
    estimates.unpersist()


@dataclass(frozen=True)
class Cost:
    """What some work took: on the clock, and of all processors together."""

    clock: float
    processor: float

    def against(self, yardstick: Cost) -> str:
        """This cost and its ratios to another."""
        ratios = (self.clock / yardstick.clock, self.processor / yardstick.processor)
        return f"{self.clock:7.1f} s  {ratios[0]:.2f} ×   processors {self.processor:7.1f} s  {ratios[1]:.2f} ×"


def cost(work: Callable[[], None]) -> Cost:
    """Processor time tells the work from the waiting where a machine is shared."""
    start, used = time.monotonic(), processor_seconds()
    work()
    return Cost(time.monotonic() - start, processor_seconds() - used)


def processor_seconds() -> float:
    """Seconds that this process, its JVM and the Python workers have computed, as Linux counts them."""
    ticks = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        with suppress(OSError):  # it may have ended since; its parent has its time
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(spark: SparkSession, queries: int, replicates: int, rounds: int) -> dict[str, float]:
    """Both in turns, so that whatever else the machine does falls on both; the least of the rounds counts."""
    with tempfile.TemporaryDirectory() as folder:
        # Elsewhere, so that the memory of this process is the driver's alone.
        writer = get_context("spawn").Process(target=write, args=(Path(folder), queries))
        writer.start()
        writer.join()
        rows = spark.read.parquet(folder)
        turns = [(cost(lambda: plain(rows)), cost(lambda: ours(rows, PLAN))) for _ in range(rounds + 1)]
        yardstick, mine = (_least(costs) for costs in zip(*turns[1:], strict=True))
        click.echo(f"{queries:,} queries × 2 systems × {len(METRICS)} metrics, {len(SEGMENTS)} segments of {VALUES}")
        click.echo(f"plain means            {yardstick.against(yardstick)}")
        click.echo(f"all estimates          {mine.against(yardstick)}")
        figures = {"queries": queries, "plain_seconds": yardstick.clock, "seconds": mine.clock}
        if replicates:
            drawn = cost(lambda: ours(rows, replace(PLAN, bootstrap=replicates, percentiles=True)))
            click.echo(f"{replicates:5,} replicates too   {drawn.against(yardstick)}")
            figures |= {"replicates": replicates, "seconds_with_replicates": drawn.clock}
            figures |= {"processor_seconds_with_replicates": drawn.processor}
        peaks = peak_megabytes()
        click.echo(", ".join(f"{kind} {megabytes:,} MB" for kind, megabytes in peaks.items()))
        return figures | {f"megabytes of {kind}": megabytes for kind, megabytes in peaks.items()}


def growth(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """What grows from one size to the next: the time of replicates, and the most memory of the driver so far."""
    times = after["queries"] / before["queries"]
    grown = [f"from {before['queries']:,.0f} to {after['queries']:,.0f} queries ({times:.2f} ×):"]
    for name, key in (("clock", "seconds_with_replicates"), ("processors", "processor_seconds_with_replicates")):
        if key in after:
            grown.append(f"replicates {after[key] / before[key]:.2f} × by {name},")
    key = "megabytes of driver (Python)"
    return " ".join([*grown, f"driver (Python) {before[key]:,.0f} → {after[key]:,.0f} MB"])


def _least(costs: Sequence[Cost]) -> Cost:
    return Cost(min(c.clock for c in costs), min(c.processor for c in costs))


@click.command()
@click.option("--queries", "sizes", multiple=True, default=(1_000_000,), show_default=True, help="May be repeated.")
@click.option("--replicates", default=0, show_default=True, help="Bootstrap replicates to measure as well.")
@click.option("--rounds", default=2, show_default=True)
def main(sizes: tuple[int, ...], replicates: int, rounds: int) -> None:
    """Print the times, their ratio, and how they grow."""
    measured(sizes, replicates, rounds)


def measured(sizes: Sequence[int], replicates: int, rounds: int = 2) -> list[dict[str, float]]:
    """The figures of each size, in a session of their own."""
    with session(Spark(master="local[2]"), "benchmark of statistics") as spark:
        figures = [measure(spark, queries, replicates, rounds) for queries in sizes]
    for before, after in pairwise(figures):
        click.echo(growth(before, after))
    return figures


if __name__ == "__main__":
    main()
