"""From tables to per-query metrics in memory: Assay against pytrec_eval and ranx, as ratios in one run.

    python -m benchmarks.in_memory [queries] [output.json]

Every tool starts from the same pandas tables and ends with one number per query and metric, so the time to build a
tool's own structures counts. Compilation does not: each warms up first.
"""

from __future__ import annotations

import gc
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytrec_eval

from udfs.conventions import Conventions
from udfs.evaluator import evaluate_tables
from udfs.registry import parse_metric

DOCUMENTS = 20
LABELS = 10
REPEATS = 3
CUTS = (5, 10, 20)
# Fourteen metrics that all three have; by Assay's name, trec_eval's and that of ranx.
METRICS = [
    *[(f"ndcg(gain=linear)@{k}", f"ndcg_cut_{k}", f"ndcg@{k}") for k in CUTS],
    *[(f"precision@{k}", f"P_{k}", f"precision@{k}") for k in CUTS],
    *[(f"recall@{k}", f"recall_{k}", f"recall@{k}") for k in CUTS],
    *[(f"map@{k}", f"map_cut_{k}", f"map@{k}") for k in CUTS],
    ("mrr", "recip_rank", "mrr"),
    ("rprec", "Rprec", "r-precision"),
]
FLOOR = 2.0


def draw_tables(queries: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rankings of 20 documents and 10 labels for each query, about half of them of ranked documents."""
    rng = np.random.default_rng(seed)
    # Steps of at least 1 from a random start: no document comes twice in a query.
    steps = np.cumsum(rng.integers(1, 50, (queries, DOCUMENTS + LABELS)), axis=1)
    pool = rng.permuted((rng.integers(0, 10**6, (queries, 1)) + steps) % 10**6, axis=1)
    ranked = pool[:, :DOCUMENTS]
    labelled = pool[:, DOCUMENTS - LABELS // 2 : DOCUMENTS + LABELS - LABELS // 2]
    names = np.array([f"query {number}" for number in range(queries)], dtype=object)

    def build_columns(docs: Any) -> dict[str, Any]:
        ids = [f"doc-{number}" for number in docs.ravel()]
        return {"query_id": np.repeat(names, docs.shape[1]), "doc_id": np.array(ids, dtype=object)}

    score = rng.random(ranked.size, dtype=np.float32).astype(np.float64)  # trec_eval compares 32 bits
    rankings = pd.DataFrame({**build_columns(ranked), "score": score})
    grades = np.minimum(rng.geometric(0.5, labelled.size) - 1, 3)
    grades[::LABELS] = 1  # ranx wants a relevant document for each query
    return rankings, pd.DataFrame({**build_columns(labelled), "grade": grades})


def score_with_assay(rankings: pd.DataFrame, labels: pd.DataFrame) -> dict[str, Any]:
    table = evaluate_tables(
        rankings, labels, [ours for ours, _, _ in METRICS], conventions=Conventions(no_relevant="zero")
    )
    return {ours: table[parse_metric(ours).key].to_numpy() for ours, _, _ in METRICS}


def nest_rows(table: pd.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = {}
    for query, doc, value in zip(table["query_id"], table["doc_id"], table[column].tolist(), strict=True):
        result.setdefault(query, {})[doc] = value
    return result


def score_with_pytrec_eval(rankings: pd.DataFrame, labels: pd.DataFrame) -> dict[str, Any]:
    cuts = ",".join(map(str, CUTS))
    measures = {f"{name}.{cuts}" for name in ("ndcg_cut", "P", "recall", "map_cut")} | {"recip_rank", "Rprec"}
    results = pytrec_eval.RelevanceEvaluator(nest_rows(labels, "grade"), measures).evaluate(
        nest_rows(rankings, "score")
    )
    return {ours: np.array([row[theirs] for row in results.values()]) for ours, theirs, _ in METRICS}


def score_with_ranx(rankings: pd.DataFrame, labels: pd.DataFrame) -> dict[str, Any]:
    import ranx

    qrels = ranx.Qrels.from_df(labels, q_id_col="query_id", doc_id_col="doc_id", score_col="grade")
    run = ranx.Run.from_df(rankings, q_id_col="query_id", doc_id_col="doc_id", score_col="score")
    results = ranx.evaluate(qrels, run, [theirs for _, _, theirs in METRICS], return_mean=False)
    return {ours: results[theirs] for ours, _, theirs in METRICS}


TOOLS: dict[str, Callable[[pd.DataFrame, pd.DataFrame], dict[str, Any]]] = {
    "assay": score_with_assay,
    "pytrec_eval": score_with_pytrec_eval,
    "ranx": score_with_ranx,
}


def measure(queries: int) -> dict[str, Any]:
    """The best time of each tool over several rounds in turns, and the largest difference of their means."""
    small, data = draw_tables(200), draw_tables(queries)
    for run in TOOLS.values():
        run(*small)
    seconds: dict[str, list[float]] = {name: [] for name in TOOLS}
    means: dict[str, dict[str, float]] = {}
    for _ in range(REPEATS):
        for name, run in TOOLS.items():
            gc.collect()
            start = time.perf_counter()
            values = run(*data)
            seconds[name].append(time.perf_counter() - start)
            means[name] = {metric: float(np.mean(numbers)) for metric, numbers in values.items()}
    best = {name: min(times) for name, times in seconds.items()}
    off = {name: max(abs(of_tool[m] - means["assay"][m]) for m in of_tool) for name, of_tool in means.items()}
    return {
        "queries": queries,
        "documents": DOCUMENTS,
        "metrics": len(METRICS),
        "seconds": best,
        "ratio": {name: took / best["assay"] for name, took in best.items()},
        "largest_difference_of_means": off,
        "floor": FLOOR,
    }


def main(queries: int, output: str) -> None:
    """Print the table and the JSON; fail if Assay is not clearly ahead."""
    warnings.simplefilter("ignore")  # of numba, about the code of ranx
    logging.disable(logging.WARNING)
    result = measure(queries)
    print(f"{queries:,} queries × {DOCUMENTS} documents, {len(METRICS)} metrics, best of {REPEATS}\n")
    print(f"{'':12} {'seconds':>9} {'× Assay':>9} {'differs by':>12}")
    for name, took in result["seconds"].items():
        off = result["largest_difference_of_means"][name]
        print(f"{name:12} {took:9.2f} {result['ratio'][name]:9.1f} {off:12.1e}")
    text = json.dumps(result)
    print(f"\n{text}")
    if output:
        Path(output).write_text(text + "\n", encoding="utf-8")
    behind = [name for name, ratio in result["ratio"].items() if name != "assay" and ratio < FLOOR]
    if behind:
        sys.exit(f"Assay is not {FLOOR:g} times as fast as {' and '.join(behind)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000, sys.argv[2] if len(sys.argv) > 2 else "")
