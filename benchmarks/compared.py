"""From two pandas tables to a compared result: `assay.evaluate` against ranx's `evaluate` and `compare`.

    python -m benchmarks.compared [queries]           # both tools, warm, and the first call of each
    python -m benchmarks.compared queries assay       # the first call of one tool in this process

Both start from one table of two systems' lists and one of judgments. Assay ends with metrics per query, means with
intervals, paired t tests adjusted by Holm, and a verdict; ranx with its report of paired t tests. Processor seconds are
those of the process and do not depend on what else the machine does. The first call is what a user of a script waits
for: imports and, for ranx, compilation by numba, in a process of its own; the other figures are without both.
"""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd

import assay
from benchmarks.in_memory import draw_tables

METRICS = ("ndcg@10", "precision@10", "recall@10", "map@10", "mrr")
REPEATS = 3


def draw_systems(queries: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The lists of two systems over the same documents, each with scores of its own, and the judgments."""
    old, labels = draw_tables(queries, seed=0)
    scores = old["score"].sample(frac=1, random_state=1).to_numpy()
    return pd.concat([old.assign(system="old"), old.assign(system="new", score=scores)], ignore_index=True), labels


def compare_with_assay(rankings: pd.DataFrame, labels: pd.DataFrame) -> dict[str, float]:
    result = assay.evaluate(
        rankings,
        labels,
        ["ndcg(gain=linear)@10", *METRICS[1:]],
        baseline="old",
        conventions={"no_relevant": "zero", "order": "score"},
    )
    rows = result.comparisons
    assert result.verdict
    return dict(zip(METRICS, rows["p_value"], strict=True))


def compare_with_ranx(rankings: pd.DataFrame, labels: pd.DataFrame) -> dict[str, float]:
    import ranx

    qrels = ranx.Qrels.from_df(labels, q_id_col="query_id", doc_id_col="doc_id", score_col="grade")
    runs = []
    for system in ("old", "new"):
        lists = rankings[rankings["system"] == system]
        run = ranx.Run.from_df(lists, q_id_col="query_id", doc_id_col="doc_id", score_col="score")
        run.name = system
        ranx.evaluate(qrels, run, list(METRICS))
        runs.append(run)
    report = ranx.compare(qrels, runs, list(METRICS), stat_test="student")
    comparison = report.comparisons[frozenset(("old", "new"))]
    return {name: float(comparison[name]["p_value"]) for name in METRICS}


TOOLS: dict[str, Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]] = {
    "assay": compare_with_assay,
    "ranx": compare_with_ranx,
}


def measure(queries: int) -> dict[str, Any]:
    """The best wall and processor seconds of each tool, in turns, and the largest difference of their p-values."""
    small, data = draw_systems(200), draw_systems(queries)
    for run in TOOLS.values():
        run(*small)
    wall: dict[str, list[float]] = {name: [] for name in TOOLS}
    processor: dict[str, list[float]] = {name: [] for name in TOOLS}
    p_values: dict[str, dict[str, float]] = {}
    for _ in range(REPEATS):
        for name, run in TOOLS.items():
            gc.collect()
            start, busy = time.perf_counter(), time.process_time()
            p_values[name] = run(*data)
            wall[name].append(time.perf_counter() - start)
            processor[name].append(time.process_time() - busy)
    seconds = {
        kind: {name: min(of) for name, of in times.items()}
        for kind, times in (("wall", wall), ("processor", processor))
    }
    return {
        "queries": queries,
        "seconds": seconds,
        "first_call": {name: _measure_in_process(name, queries) for name in TOOLS},
        "ratio": {kind: of["ranx"] / of["assay"] for kind, of in seconds.items()},
        "largest_difference_of_p": max(abs(p_values["assay"][name] - p_values["ranx"][name]) for name in METRICS),
    }


def measure_first_call(tool: str, queries: int) -> dict[str, float]:
    """Wall and processor seconds of the first call, with the imports that it makes."""
    data = draw_systems(queries)
    start, busy = time.perf_counter(), time.process_time()
    TOOLS[tool](*data)
    return {"wall": time.perf_counter() - start, "processor": time.process_time() - busy}


def _measure_in_process(tool: str, queries: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.compared", str(queries), tool]
    seconds: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return seconds


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of numba, about the code of ranx
    logging.disable(logging.WARNING)
    if len(sys.argv) > 2:
        print(json.dumps(measure_first_call(sys.argv[2], int(sys.argv[1]))))
        sys.exit()
    outcome = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
    print(json.dumps(outcome, indent=2))
    if outcome["ratio"]["processor"] < 1:
        sys.exit("Assay is slower than ranx")
