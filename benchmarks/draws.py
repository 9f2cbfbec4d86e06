"""The cost of draws: a whole run with posteriors against the same run with `unjudged: cut_then_condense`.

    python -m benchmarks draws
    python -m benchmarks.draws 100000 1000000 --pages 1 --turns 1

A log of some pages per query (five by default) is drawn in NumPy; three systems with ten documents per query are
evaluated by four metrics, with 30 draws. Every size has a process and a JVM of its own; each mode runs in turns and the
faster run counts. Prints seconds by stage, the ratios by the clock and by processor time, and the peak memory of the
largest Python worker.
"""

from __future__ import annotations

import argparse
import datetime as dt
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.memory import measure_processor_seconds, watch_peaks
from benchmarks.world_logs import ATTRACTION, SHARES, SHOWN
from jobs.support.session import open_session
from pipelines.config.model import Config
from pipelines.config.spark import SparkSettings
from pipelines.evaluate import evaluate
from udfs.ragged import Ints

SYSTEMS = {"production": 0.5, "older": 0.3, "candidate": 0.7}  # and how much their scores follow the true grades
SERVED_BY_OLDER = 0.1  # of the pages; production serves the others
DOCUMENTS = 30  # per query
METRICS = ("ndcg@10", "recall@10", "mrr", "precision@5")
MODES = ("cut_then_condense", "posterior")
DATE = dt.date(2026, 11, 1)
FOLDER = Path("build/bench")
SIZES, PAGES, TURNS = (100_000, 1_000_000), 5, 2
_CHUNK = 25_000  # queries of a file


def write_tables(folder: Path, queries: int, pages: int, seed: int = 1) -> int:
    """Write rankings, impressions and interactions; returns the number of impressions."""
    total = 0
    for name in ("rankings", "impressions", "interactions"):
        (folder / name).mkdir(parents=True)
    for start in range(0, queries, _CHUNK):
        random = np.random.default_rng((seed, start))
        query = np.arange(start, min(start + _CHUNK, queries))
        shape = (len(query), DOCUMENTS)
        grade = np.digitize(random.random(shape), np.cumsum(SHARES)[:-1])
        tops = {
            name: np.argsort(-(quality * grade + random.normal(size=shape)), axis=1)[:, :SHOWN]
            for name, quality in SYSTEMS.items()
        }
        for name, table in {
            "rankings": _list_rankings(query, tops),
            **_serve(query, grade, tops, pages, random),
        }.items():
            pq.write_table(table, folder / name / f"{start:08d}.parquet")
            total += table.num_rows if name == "impressions" else 0
    return total


def _list_rankings(query: Ints, tops: dict[str, Ints]) -> pa.Table:
    rows = len(query) * SHOWN
    parts = [
        {
            "system": pa.array([name]).take(pa.array(np.zeros(rows, dtype=np.int64))),
            "query_id": _name_ids("q", np.repeat(query, SHOWN)),
            "doc_id": _name_documents(np.repeat(query, SHOWN), top.ravel()),
            "rank": pa.array(np.tile(np.arange(1, SHOWN + 1, dtype=np.int32), len(query))),
        }
        for name, top in tops.items()
    ]
    return pa.concat_tables([pa.table(part) for part in parts])


def _serve(
    query: Ints, grade: Ints, tops: dict[str, Ints], pages: int, random: np.random.Generator
) -> dict[str, pa.Table]:
    """Impressions and clicks of pages, of which a few queries have many and some none."""
    at = np.repeat(np.arange(len(query)), random.geometric(1 / (pages + 1), len(query)) - 1)
    older = random.random(len(at)) < SERVED_BY_OLDER
    document = np.where(older[:, None], tops["older"][at], tops["production"][at])
    page = _name_ids(f"p{query[0]}-", np.repeat(np.arange(len(at)), SHOWN))
    user = _name_ids("u", np.repeat(random.integers(0, 10**9, len(at)), SHOWN))
    seconds = np.repeat(random.integers(0, 80_000, len(at)), SHOWN)
    midnight = int(dt.datetime.combine(DATE, dt.time(), dt.UTC).timestamp())
    impressions = pa.table(
        {
            "serp_id": page,
            "query_id": _name_ids("q", np.repeat(query[at], SHOWN)),
            "user_id": user,
            "doc_id": _name_documents(np.repeat(query[at], SHOWN), document.ravel()),
            "position": pa.array(np.tile(np.arange(1, SHOWN + 1, dtype=np.int32), len(at))),
            "ts": pa.array((midnight + seconds) * 1_000_000, pa.timestamp("us", "UTC")),
            "system": pa.array(["production", "older"]).take(pa.array(np.repeat(older.astype(np.int64), SHOWN))),
        }
    )
    chance = ATTRACTION[np.take_along_axis(grade[at], document, 1)] / np.arange(1, SHOWN + 1)
    clicked = pa.array(random.random(chance.shape).ravel() < chance.ravel())
    clicks = impressions.select(["serp_id", "user_id", "doc_id", "ts"]).filter(clicked)
    clicks = clicks.append_column("event_id", _name_ids(f"e{query[0]}-", np.arange(clicks.num_rows)))
    clicks = clicks.append_column("kind", pa.array(["click"]).take(pa.array(np.zeros(clicks.num_rows, dtype=np.int64))))
    return {"impressions": impressions, "interactions": clicks}


def _name_ids(prefix: str, numbers: npt.NDArray[np.integer]) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.cast(pa.array(numbers), pa.string()), "")


def _name_documents(query: Ints, document: Ints) -> pa.Array:
    return _name_ids("d", query * DOCUMENTS + document)


def build_config(folder: Path, unjudged: str) -> Config:
    """A run on the generated files; the candidates are vouched for, so that there is one answer."""
    return Config.model_validate(
        {
            "inputs": {name: {"path": str(folder / name)} for name in ("rankings", "impressions", "interactions")},
            "metrics": METRICS,
            "compare": {"baseline": "production"},
            "trained": dict.fromkeys(SYSTEMS, "none"),
            "conventions": {"unjudged": unjudged},
            "report": False,
            "warehouse": str(folder / "warehouse"),
        }
    )


def time_run(spark: SparkSession, folder: Path, unjudged: str) -> dict[str, float]:
    """Seconds of one run by stage, in total and of processors, and the peak of the largest worker."""
    start, spent = time.perf_counter(), measure_processor_seconds()
    with watch_peaks() as peaks:
        manifest = evaluate(spark, build_config(folder, unjudged), DATE, force=True).manifest
    total, spent = time.perf_counter() - start, measure_processor_seconds() - spent
    peak = peaks.get("worker (Python)", 0)
    figures = {"run": total, "processors": spent, **manifest.seconds, "worker_megabytes": peak}
    print(f"{folder.name}, {unjudged}: {_describe(figures)}", flush=True)
    return figures


def measure(queries: int, pages: int = PAGES, turns: int = TURNS) -> dict[str, Any]:
    """Both modes at one size."""
    settings = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": str(8 + queries // 20_000)}
    folder, warm = FOLDER / f"draws-{queries}", FOLDER / f"draws-{queries}-warm"
    for each in (folder, warm):
        shutil.rmtree(each, ignore_errors=True)
    figures: dict[str, Any] = {"queries": queries, "impressions": write_tables(folder, queries, pages)}
    write_tables(warm, 2_000, pages)
    with open_session(SparkSettings(master="local[2]", settings=settings), "assay benchmark draws") as spark:
        for mode in MODES:
            time_run(spark, warm, mode)  # the JVM compiles hot code
        for _ in range(turns):
            for mode in MODES:
                figures[mode] = min(
                    (time_run(spark, folder, mode), figures.get(mode, {"run": np.inf})), key=lambda run: run["run"]
                )
    for each in (folder, warm):
        shutil.rmtree(each)
    plain, posterior = (figures[mode] for mode in MODES)
    figures |= {"ratio": posterior["run"] / plain["run"]}
    figures |= {"ratio_of_processors": posterior["processors"] / plain["processors"]}
    return figures


def _describe(figures: dict[str, float]) -> str:
    text = ", ".join(f"{name} {took:.1f}" for name, took in figures.items() if name != "worker_megabytes")
    return f"{text} s; largest worker {figures['worker_megabytes']:,} MB"


def main(sizes: Sequence[int] = SIZES, pages: int = PAGES, turns: int = TURNS) -> list[dict[str, Any]]:
    """Measure, print the figures, and return them."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as apart:
        results = list(apart.map(partial(measure, pages=pages, turns=turns), sizes))
    for result in results:
        ratios = f"ratio {result['ratio']:.2f}, of processor time {result['ratio_of_processors']:.2f}"
        print(f"\n{result['queries']:,} queries, {result['impressions']:,} impressions: {ratios}")
        for mode in MODES:
            print(f"  {mode}: {_describe(result[mode])}")
    growth = results[-1]["queries"] / results[0]["queries"]
    for name in ("run", "processors"):
        took = results[-1]["posterior"][name] / results[0]["posterior"][name]
        print(f"{growth:g} × the queries took {took:.1f} × the time with posteriors ({name})")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, help="numbers of queries")
    parser.add_argument("--pages", type=int, default=PAGES, help="pages of the log per query, on average")
    parser.add_argument("--turns", type=int, default=TURNS, help="runs of each mode")
    chosen = parser.parse_args()
    main(chosen.sizes, chosen.pages, chosen.turns)
