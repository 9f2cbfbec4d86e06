"""Metrics in memory, without Spark: for a notebook, a unit test, or tables that fit one machine.

from udfs.evaluator import Evaluator, evaluate

Evaluator(metrics=["ndcg@10", "mrr"]).evaluate_ranking(["b", "a"], {"a": 3, "c": 1})
evaluate(rankings, labels, metrics=["ndcg@10", "recall@100"])
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from schemas.errors import DataQualityError, InputError
from udfs.conventions import Conventions
from udfs.lists import assemble
from udfs.ragged import Ragged
from udfs.registry import parse_all
from udfs.score import score

DEFAULT_METRICS = ("ndcg@10", "recall@10", "precision@10", "hit@10", "mrr@10", "map", "judged@10")
AT_EVERY_K = ("ndcg", "recall", "precision", "hit")

Frame = TypeVar("Frame")


class Change(NamedTuple):
    """One metric of two rankings; `relative` is null where the baseline is 0, all are where either is undefined."""

    baseline: float | None
    improved: float | None
    absolute: float | None
    relative: float | None


class Evaluator:
    """Scores one ranking at a time, by the same kernels as everything else.

    Name the metrics, or the cut-offs at which the usual ones are wanted. `max_grade` is the top of the label
    scale, which err and graded rbp ask for.
    """

    def __init__(
        self,
        k_values: Sequence[int] | None = None,
        *,
        metrics: Sequence[str] | None = None,
        conventions: Conventions | None = None,
        max_grade: float | None = None,
    ) -> None:
        names = list(metrics or ())
        if k_values:
            names += [f"{name}@{k}" for name in AT_EVERY_K for k in k_values] + ["mrr", "map"]
        self.specs = parse_all(names or DEFAULT_METRICS)
        conventions = conventions or Conventions()
        self.conventions = conventions.model_copy(update={"max_grade": max_grade}) if max_grade else conventions

    def evaluate_ranking(self, items: Iterable[Any], judgments: Any) -> dict[str, float | None]:
        """Each metric of one ranking by its name; None where it is undefined.

        `items` come best first: ids, or mappings or objects that have one as `key`, `id` or `doc_id`, such as the
        results of a vector store. Their `score` orders them only where the conventions say `order: score`.
        `judgments` maps ids to grades, or holds pairs of both.
        """
        grades = dict(judgments.items() if isinstance(judgments, Mapping) else judgments)
        ids = self._ordered(list(items))
        codes: dict[Hashable, int] = {}
        doc = np.array([codes.setdefault(id_, len(codes)) for id_ in ids], dtype=np.int64)
        block, duplicates = assemble(
            Ragged.of_lengths([len(ids)]),
            doc,
            np.array([grades.get(id_, np.nan) for id_ in ids], dtype=np.float64),
            Ragged.of_lengths([len(grades)]),
            np.array(list(grades.values()), dtype=np.float64),
        )
        if self.conventions.duplicates == "error" and duplicates[0]:
            raise DataQualityError(f"{duplicates[0]} items stand in the ranking twice")
        values = score(block, self.specs, self.conventions)
        return {spec.name: _none(float(values[spec.key][0])) for spec in self.specs}

    def compare_rankings(self, baseline: Iterable[Any], improved: Iterable[Any], judgments: Any) -> dict[str, Change]:
        """Each metric of two rankings for the same query by its name, and the change from the first to the second."""
        judgments = dict(judgments.items() if isinstance(judgments, Mapping) else judgments)
        before, after = self.evaluate_ranking(baseline, judgments), self.evaluate_ranking(improved, judgments)
        return {name: _change(before[name], after[name]) for name in before}

    def _ordered(self, items: list[Any]) -> list[Hashable]:
        ids = [_id(item) for item in items]
        if self.conventions.order == "rank":
            return ids
        scores = np.array([_score(item) for item in items], dtype=np.float64)
        if self.conventions.order == "score_float32":
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)
        if self.conventions.ties == "error" and len(set(scores.tolist())) < len(items):
            raise DataQualityError("items have equal scores")
        # Python sorts text by code point and keeps the order of equals, so ids first, then scores.
        rows = sorted(range(len(ids)), key=lambda i: str(ids[i]), reverse=self.conventions.ties != "doc_id_asc")
        return [ids[i] for i in sorted(rows, key=lambda i: -scores[i])]


def evaluate(
    rankings: Frame,
    labels: Any,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    queries: Any = None,
    documents: Any = None,
    decisions: Any = None,
    conventions: Conventions | None = None,
) -> Frame:
    """One row per system and query, one column per metric by its key; null where the metric is undefined.

    Tables are of pandas, Arrow or Polars, and the answer is of the kind that `rankings` is. `rankings` has
    query_id, doc_id, rank or score, and system if there are several; `labels` has query_id, doc_id and grade;
    `queries` query_id and weight; `documents` doc_id, category and popularity; `decisions` what the metrics of
    decisions read. Queries come in the order in which they first appear, and for each the systems.
    """
    import pyarrow.compute as pc

    from udfs.collect import collect
    from udfs.scored import scored
    from udfs.tables import Source, table_like

    specs = parse_all(metrics)
    conventions = conventions or Conventions()
    source = Source(rankings, "rankings")
    collected = collect(
        source,
        Source(labels, "labels"),
        queries=None if queries is None else Source(queries, "queries"),
        documents=None if documents is None else Source(documents, "documents"),
        decisions=None if decisions is None else Source(decisions, "decisions"),
        conventions=conventions,
    ).checked(conventions)
    top = collected.labels.grade.max(initial=0.0)
    if conventions.max_grade is None and top > 0:
        conventions = conventions.model_copy(update={"max_grade": float(top)})

    columns = scored(collected, specs, conventions)
    if conventions.duplicates == "error" and pc.any(pc.greater(columns["duplicates"], 0)).as_py():
        raise DataQualityError("the same document stands in a list twice", hint="duplicates: best keeps the best place")
    return table_like(source, columns)  # type: ignore[no-any-return]


def _get(item: Any, names: Sequence[str]) -> Any:
    for name in names:
        if isinstance(item, Mapping):
            if name in item:
                return item[name]
        elif hasattr(item, name):
            return getattr(item, name)
    return None


def _id(item: Any) -> Hashable:
    if isinstance(item, str | int):
        return item
    found = _get(item, ("key", "id", "doc_id"))
    if found is None:
        raise InputError(f"an item of type {type(item).__name__} has no id", hint="give it key, id or doc_id")
    return found  # type: ignore[no-any-return]


def _score(item: Any) -> float:
    found = _get(item, ("score",))
    if found is None:
        raise InputError("an item has no score", hint="order: rank takes the items as they come")
    return float(found)


def _none(value: float) -> float | None:
    return None if np.isnan(value) else value


def _change(before: float | None, after: float | None) -> Change:
    if before is None or after is None:
        return Change(before, after, None, None)
    return Change(before, after, after - before, (after - before) / before if before else None)
