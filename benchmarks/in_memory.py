"""From tables to per-query numbers in memory: Assay against pytrec_eval and ranx, as ratios in one run.

    python -m benchmarks.in_memory [queries] [output.json]

Every tool starts from the same pandas tables and ends with one number per query and metric, so that what it takes to
build a tool's own structures counts, as it does for whoever uses it. Compilation does not: each warms up first.
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
from udfs.evaluator import evaluate
from udfs.registry import parse

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


def tables(queries: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rankings of 20 documents and 10 labels for each query, about half of them of ranked documents."""
    rng = np.random.default_rng(seed)
    catalogue = 10 * DOCUMENTS
    pool = np.argsort(rng.random((queries, catalogue)), axis=1) if queries <= 2000 else None
    if pool is None:  # as distinct within a query, without sorting as much
        start = rng.integers(0, 10**6, (queries, 1))
        pool = (start + np.cumsum(rng.integers(1, 50, (queries, DOCUMENTS + LABELS)), axis=1)) % 10**6
        pool = rng.permuted(pool, axis=1)
    ranked = pool[:, :DOCUMENTS]
    labelled = pool[:, DOCUMENTS - LABELS // 2 : DOCUMENTS + LABELS - LABELS // 2]
    names = np.array([f"query {number}" for number in range(queries)], dtype=object)

    def frame(docs: Any) -> dict[str, Any]:
        ids = [f"doc-{number}" for number in docs.ravel()]
        return {"query_id": np.repeat(names, docs.shape[1]), "doc_id": np.array(ids, dtype=object)}

    rankings = pd.DataFrame({**frame(ranked), "score": rng.random(ranked.size, dtype=np.float32)})
    grades = np.minimum(rng.geometric(0.5, labelled.size) - 1, 3)
    grades[::LABELS] = 1  # ranx wants a relevant document for each query
    return rankings, pd.DataFrame({**frame(labelled), "grade": grades})


def with_assay(rankings: pd.DataFrame, labels: pd.DataFrame) -> dict[str, Any]:
    table = evaluate(rankings, labels, [ours for ours, _, _ in METRICS], conventions=Conventions(no_relevant="zero"))
    return {ours: table[parse(ours).key].to_numpy() for ours, _, _ in METRICS}


def nested(table: pd.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = {}
    for query, doc, value in zip(table["query_id"], table["doc_id"], table[column].tolist(), strict=True):
        result.setdefault(query, {})[doc] = value
    return result


def with_pytrec_eval(rankings: pd.DataFrame, labels: pd.DataFrame) -> dict[str, Any]:
    cuts = ",".join(map(str, CUTS))
    measures = {f"{name}.{cuts}" for name in ("ndcg_cut", "P", "recall", "map_cut")} | {"recip_rank", "Rprec"}
    found = pytrec_eval.RelevanceEvaluator(nested(labels, "grade"), measures).evaluate(nested(rankings, "score"))
    return {ours: np.array([row[theirs] for row in found.values()]) for ours, theirs, _ in METRICS}


def with_ranx(rankings: pd.DataFrame, labels: pd.DataFrame) -> dict[str, Any]:
    import ranx

    qrels = ranx.Qrels.from_df(labels, q_id_col="query_id", doc_id_col="doc_id", score_col="grade")
    run = ranx.Run.from_df(rankings, q_id_col="query_id", doc_id_col="doc_id", score_col="score")
    found = ranx.evaluate(qrels, run, [theirs for _, _, theirs in METRICS], return_mean=False)
    return {ours: found[theirs] for ours, _, theirs in METRICS}


TOOLS: dict[str, Callable[[pd.DataFrame, pd.DataFrame], dict[str, Any]]] = {
    "assay": with_assay,
    "pytrec_eval": with_pytrec_eval,
    "ranx": with_ranx,
}


def measure(queries: int) -> dict[str, Any]:
    """The best time of each tool over several rounds, the tools taking turns; and how well their numbers agree."""
    small, data = tables(200), tables(queries)
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
            means[name] = {metric: float(np.mean(found)) for metric, found in values.items()}
    best = {name: min(times) for name, times in seconds.items()}
    off = {name: max(abs(found[m] - means["assay"][m]) for m in found) for name, found in means.items()}
    return {
        "queries": queries,
        "documents": DOCUMENTS,
        "metrics": len(METRICS),
        "seconds": best,
        "ratio": {name: took / best["assay"] for name, took in best.items()},
        "largest_difference_of_means": off,
        "floor": FLOOR,
    }


def main(queries: int = 50_000, output: str = "") -> None:
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
    main(*[int(argument) if argument.isdigit() else argument for argument in sys.argv[1:]])  # type: ignore[arg-type]
