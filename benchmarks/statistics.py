"""Estimates and comparisons against a plain Spark mean over the same grouping sets, as a ratio in one run.

    python -m benchmarks.statistics --queries 1000000 --replicates 1000

Two systems, 14 metrics of which ten can be pooled, six segment columns with 40 values each.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

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


def seconds(work: Callable[[], None], rounds: int) -> float:
    """The fastest of several rounds: what the machine can do when left alone."""
    taken = []
    for _ in range(rounds):
        start = time.monotonic()
        work()
        taken.append(time.monotonic() - start)
    return min(taken)


def measure(spark: SparkSession, queries: int, replicates: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), queries)
        rows = spark.read.parquet(folder)
        # In turns, so that whatever else the machine does falls on both.
        turns = [(seconds(lambda: plain(rows), 1), seconds(lambda: ours(rows, PLAN), 1)) for _ in range(rounds + 1)]
        yardstick, mine = (min(times) for times in zip(*turns[1:], strict=True))
        click.echo(f"{queries:,} queries × 2 systems × {len(METRICS)} metrics, {len(SEGMENTS)} segments of {VALUES}")
        click.echo(f"plain means    {yardstick:7.1f} s")
        click.echo(f"all estimates  {mine:7.1f} s  {mine / yardstick:.2f} ×")
        if replicates:
            drawn = replace(PLAN, bootstrap=replicates, percentiles=True)
            taken = seconds(lambda: ours(rows, drawn), 1)
            click.echo(f"{replicates:,} bootstrap replicates  {taken:7.1f} s  {taken / yardstick:.2f} ×")


@click.command()
@click.option("--queries", default=1_000_000, show_default=True)
@click.option("--replicates", default=0, show_default=True, help="Bootstrap replicates to measure as well.")
@click.option("--rounds", default=2, show_default=True)
def main(queries: int, replicates: int, rounds: int) -> None:
    """Print the times and their ratio."""
    with session(Spark(master="local[2]"), "benchmark of statistics") as spark:
        measure(spark, queries, replicates, rounds)


if __name__ == "__main__":
    main()
