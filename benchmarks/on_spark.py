"""From Parquet files to per-query numbers and means by segment: Assay on Spark against what people use today.

    python -m benchmarks.on_spark [queries …]

All tools take turns in one process on one machine, so their ratios mean something where their seconds do not. A tool
has ten turns, or as many as begin within its first hundred seconds; the best one counts, since in the first ones a JVM
still compiles. Every size has a process and a JVM of its own. At the larger one, other ways to use Spark follow when
the rest is done: they take minutes, and what they leave in the JVM would weigh on Assay alone.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import peers
from benchmarks.duckdb_scores import CUTS, score_with_duckdb
from benchmarks.memory import measure_peaks
from jobs.support.session import open_session
from pipelines.comparison.estimate import estimate_metrics, select_segment_metrics
from pipelines.config.spark import SparkSettings
from pipelines.scoring.score import ScoringTables, score_lists
from udfs.conventions import Conventions
from udfs.registry import parse_metrics
from udfs.statistics.plan import Plan

DOCUMENTS = 20
LABELS = 10
FOLDER = Path("build/bench")
METRICS = [f"{name}@{k}" for name in ("ndcg", "precision", "recall", "map") for k in CUTS] + ["mrr", "rprec"]
TURNS = 10
SECONDS = 100  # a tool that has taken as long gets no other turn
SLOW = 50_000  # beyond this many queries, what takes minutes for them is left out


def generate_tables(spark: SparkSession, queries: int, folder: Path, *, hot: int = 0) -> None:
    """Rankings of 20 documents and 10 labels per query, half of them of ranked documents; `hot` more for query 0."""
    base = spark.range(queries).select(
        F.concat(F.lit("q"), F.lpad(F.col("id").cast("string"), 7, "0")).alias("query_id"), "id"
    )

    def doc(number: str) -> str:
        return f"concat('d', lpad(cast(pmod(xxhash64(id, {number}), 10000000) as string), 8, '0'))"

    depth = F.expr(f"sequence(1, {DOCUMENTS} + if(id = 0, {hot}, 0))")
    ranked = base.select("query_id", "id", F.explode(depth).alias("rank"))
    _write(
        ranked.select(F.lit("s").alias("system"), "query_id", F.expr(doc("rank")).alias("doc_id"), "rank"),
        folder / "rankings",
    )
    labelled = base.select("query_id", "id", F.explode(F.sequence(F.lit(1), F.lit(LABELS))).alias("n"))
    number = f"if(n <= {LABELS // 2}, n * 4, n + 1000000000)"
    grade = F.expr("cast(pmod(xxhash64(n, id), 4) as double)")
    _write(labelled.select("query_id", F.expr(doc(number)).alias("doc_id"), grade.alias("grade")), folder / "labels")
    segment = F.expr("concat('segment ', pmod(xxhash64(id), 40))")
    _write(base.select("query_id", F.lit(1.0).alias("weight"), segment.alias("segment_of")), folder / "queries")


def _write(table: DataFrame, folder: Path) -> None:
    table.repartition(8).write.mode("overwrite").parquet(str(folder))


def score_with_assay(spark: SparkSession, folder: Path, queries: int) -> float:
    """The real stages, written and read back as the job does; the mean ndcg@10 is returned."""
    specs = parse_metrics(METRICS)
    rankings = spark.read.parquet(str(folder / "rankings")).withColumn("score", F.lit(None).cast("double"))
    tables = ScoringTables(spark.read.parquet(str(folder / "labels")), spark.read.parquet(str(folder / "queries")))
    segments = ["segment_of"]
    scored = score_lists(
        rankings,
        tables,
        systems=["s"],
        segments=segments,
        specs=specs,
        conventions=Conventions(max_grade=3),
        rows=queries * (DOCUMENTS + LABELS + 1),  # a run has counted them
    )
    target = str(folder / "query_metrics")
    scored.rows().write.mode("overwrite").parquet(target)
    plan = Plan(
        systems=("s",),
        metrics=tuple(spec.key for spec in specs),
        pooled=tuple(spec.key for spec in specs if spec.metric.pool is not None),
        segments=(tuple(segments),),
    )
    means = select_segment_metrics(estimate_metrics(spark.read.parquet(target), plan=plan)).collect()
    return next(float(row["macro"]) for row in means if row["segment"] == "all" and row["metric"] == "ndcg_at_10")


def list_tools(spark: SparkSession, queries: int) -> dict[str, Callable[[], float]]:
    """Assay, and tools outside Spark."""
    folder = FOLDER / str(queries)
    return {
        "Assay on Spark": lambda: score_with_assay(spark, folder, queries),
        "DuckDB SQL": lambda: score_with_duckdb(folder, CUTS),
        "DuckDB SQL, and its counts": lambda: score_with_duckdb(folder, CUTS, counts=True),
        "Polars": lambda: peers.score_with_polars(folder, CUTS),
    }


def list_spark_peers(spark: SparkSession, queries: int) -> dict[str, Callable[[], float]]:
    """Other ways on Spark itself."""
    folder = FOLDER / str(queries)
    runs = {"pyspark.ml RankingEvaluator": lambda: peers.score_with_ranking_evaluator(spark, folder, CUTS)}
    if queries <= SLOW:
        runs["applyInPandas, query by query"] = lambda: peers.score_with_apply_in_pandas(spark, folder, METRICS)
    return runs


def time_in_turns(runs: Mapping[str, Callable[[], float]]) -> dict[str, dict[str, float]]:
    """The seconds of each run in its best turn, and its result."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    answers: dict[str, float] = {}
    for _ in range(TURNS):
        for name, run in runs.items():
            if sum(seconds[name]) < SECONDS:
                start = time.perf_counter()
                answers[name] = run()
                seconds[name].append(time.perf_counter() - start)
    return {"seconds": {name: min(turns) for name, turns in seconds.items()}, "ndcg@10": answers}


def measure_hot(spark: SparkSession, queries: int = 10_000, hot: int = 1_000_000) -> dict[str, float]:
    """Seconds without and with one query that has a million documents, and for that many in lists of 20."""
    seconds = {}
    for name, (size, extra) in {
        "without": (queries, 0),
        "with": (queries, hot),
        "its share": (hot // DOCUMENTS, 0),
    }.items():
        folder = FOLDER / "hot"
        generate_tables(spark, size, folder, hot=extra)
        score_with_assay(spark, folder, size)
        start = time.perf_counter()
        score_with_assay(spark, folder, size)
        seconds[name] = time.perf_counter() - start
        shutil.rmtree(folder)
    return seconds


def measure(size: int, hot: bool) -> dict[str, Any]:
    """All tools at one size in a JVM of its own; with `hot` also Assay with one query of a million documents."""
    settings = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "16"}
    with open_session(SparkSettings(master="local[2]", settings=settings), "assay benchmark") as spark:
        generate_tables(spark, 2_000, FOLDER / "warm")
        score_with_assay(spark, FOLDER / "warm", 2_000)  # warm-up: the JVM compiles hot code
        generate_tables(spark, size, FOLDER / str(size))
        ours, others = list_tools(spark, size), list_spark_peers(spark, size)
        rounds = [ours | others] if size <= SLOW else [ours, others]
        result: dict[str, Any] = {"queries": size, "documents": DOCUMENTS, "metrics": len(METRICS)}
        result |= time_in_turns(rounds[0])
        if hot:
            result["hot"] = measure_hot(spark)
        result["peak_megabytes"] = measure_peaks()
        for later in rounds[1:]:
            for figure, of_others in time_in_turns(later).items():
                result[figure] |= of_others
        shutil.rmtree(FOLDER / str(size))
    return result


def main(sizes: tuple[int, ...] = (50_000, 1_000_000)) -> dict[str, Any]:
    """Measure, print the table, and return the figures."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as apart:
        results = list(apart.map(measure, sizes, [size == sizes[-1] for size in sizes]))
    for result in results:
        _print(result)
    growth = results[-1]["queries"] / results[0]["queries"]
    took = results[-1]["seconds"]["Assay on Spark"] / results[0]["seconds"]["Assay on Spark"]
    print(f"{growth:g} × the rows took Assay {took:.1f} × the time")
    hot = results[-1]["hot"]
    print("one query of a million documents: " + ", ".join(f"{name} {took:.1f} s" for name, took in hot.items()))
    return {"sizes": results}


def _print(result: Mapping[str, Any]) -> None:
    print(f"\n{result['queries']:,} queries × {result['documents']} documents, {result['metrics']} metrics")
    print(f"{'':32} {'seconds':>9} {'× Assay':>9} {'ndcg@10':>12}")
    ours = result["seconds"]["Assay on Spark"]
    for name, took in result["seconds"].items():
        print(f"{name:32} {took:9.2f} {took / ours:9.2f} {result['ndcg@10'][name]:12.9f}")
    print("peak memory: " + ", ".join(f"{name} {size:,} MB" for name, size in result["peak_megabytes"].items()))


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or (50_000, 1_000_000))
