"""Rankings and labels for tests: written out by hand, or drawn at random with all that is awkward in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from udfs.block import Block
from udfs.compute import compute_metrics
from udfs.conventions import Conventions
from udfs.evaluator import evaluate_tables
from udfs.lists import build_block
from udfs.ragged import Ragged
from udfs.registry import parse_metrics

Run = dict[str, dict[str, float]]


def block_of(ranked: Sequence[Sequence[float | None]], labels: Sequence[Sequence[float]]) -> Block:
    """A block from the grades in rank order, None for unjudged, and the labels of each list's query."""
    lists = Ragged.of_lengths([len(grades) for grades in ranked])
    flat = [np.nan if grade is None else grade for grades in ranked for grade in grades]
    block, _ = build_block(
        lists,
        np.arange(lists.rows),
        np.array(flat, dtype=np.float64),
        Ragged.of_lengths([len(grades) for grades in labels]),
        np.array([grade for grades in labels for grade in grades], dtype=np.float64),
    )
    return block


def value(
    metric: str,
    ranked: Sequence[float | None],
    labels: Sequence[float],
    conventions: Conventions | None = None,
) -> float:
    """One metric of one list; NaN where it is undefined."""
    (spec,) = parse_metrics([metric])
    return float(compute_metrics(block_of([ranked], [labels]), [spec], conventions or Conventions())[spec.key][0])


def ranking_table(runs: Mapping[str, Run]) -> pa.Table:
    """The scored documents of each system and query as a table."""
    rows = [
        (system, query, doc, score)
        for system, run in runs.items()
        for query, docs in run.items()
        for doc, score in docs.items()
    ]
    return pa.table(
        {
            "system": pa.array([row[0] for row in rows], pa.string()),
            "query_id": pa.array([row[1] for row in rows], pa.string()),
            "doc_id": pa.array([row[2] for row in rows], pa.string()),
            "score": pa.array([row[3] for row in rows], pa.float64()),
        }
    )


def label_table(labels: Mapping[str, Mapping[str, float]]) -> pa.Table:
    """The grade of each query and document as a table."""
    rows = [(query, doc, grade) for query, docs in labels.items() for doc, grade in docs.items()]
    return pa.table(
        {
            "query_id": pa.array([row[0] for row in rows], pa.string()),
            "doc_id": pa.array([row[1] for row in rows], pa.string()),
            "grade": pa.array([row[2] for row in rows], pa.float64()),
        }
    )


def per_query(table: pa.Table) -> dict[str, dict[str, float | None]]:
    """The rows of one system's answer by query."""
    return {row["query_id"]: row for row in table.to_pylist()}


@dataclass
class Case:
    """A run and its labels, with ties, unjudged documents, negative grades and queries on one side only."""

    run: Run = field(default_factory=dict)
    labels: dict[str, dict[str, int]] = field(default_factory=dict)

    def evaluate(self, metrics: Sequence[str], conventions: Conventions) -> dict[str, dict[str, float | None]]:
        answer = evaluate_tables(
            ranking_table({"s": self.run}), label_table(self.labels), metrics, conventions=conventions
        )
        return per_query(answer)


def random_case(seed: int, *, queries: int = 30, longest: int = 40, lowest: int = -2, ids: str = "d é漢𝒳") -> Case:
    """A case drawn from `seed`; scores repeat often, and so do grades."""
    rng = np.random.default_rng(seed)
    case = Case()
    for number in range(queries):
        query = f"q{number}"
        pool = [f"{ids[rng.integers(len(ids))]}{i}" for i in range(int(rng.integers(1, longest + 1)))]
        picked = rng.permutation(len(pool))[: int(rng.integers(0, len(pool) + 1))]
        if len(picked) or rng.random() < 0.5:
            levels = int(rng.integers(1, 60))
            case.run[query] = {pool[i]: float(np.round(rng.integers(levels) / 7 - 2, 6)) for i in picked}
        judged = rng.permutation(len(pool))[: int(rng.integers(0, len(pool) + 1))]
        top = int(rng.integers(1, 5))
        if len(judged):
            case.labels[query] = {pool[i]: int(rng.integers(lowest, top)) for i in judged}
    return case
