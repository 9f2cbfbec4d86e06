"""Metrics in memory, without Spark: for a notebook, a unit test, or tables that fit one machine.

import assay

assay.Evaluator(metrics=["ndcg@10", "mrr"]).evaluate_ranking(["b", "a"], {"a": 3, "c": 1})
assay.evaluate_tables(rankings, labels, metrics=["ndcg@10", "recall@100"])
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from schemas.errors import DataQualityError, InputError
from udfs.compute import compute_metrics
from udfs.conventions import Conventions, read_conventions
from udfs.lists import build_ranking_block
from udfs.order import build_sort_keys, order_rows
from udfs.ragged import Ints, Ragged
from udfs.registry import parse_metrics

DEFAULT_METRICS = ("ndcg@10", "recall@10", "precision@10", "hit@10", "mrr@10", "map", "judged@10")
_IDS = ("key", "id", "doc_id")
AT_EVERY_K = ("ndcg", "recall", "precision", "hit")

Frame = TypeVar("Frame")


class MetricChange(NamedTuple):
    """One metric of two rankings; `relative` is null where the baseline is 0, all are where either is undefined."""

    baseline: float | None
    improved: float | None
    absolute: float | None
    relative: float | None


class Evaluator:
    """Scores one ranking at a time, with the same kernels as a run.

    Pass the names of metrics, or cut-offs to compute the usual ones at. `max_grade` is the top of the label
    scale, which err and graded rbp require.
    """

    def __init__(
        self,
        k_values: Sequence[int] | None = None,
        *,
        metrics: Sequence[str] | str | None = None,
        conventions: Conventions | Mapping[str, Any] | None = None,
        max_grade: float | None = None,
    ) -> None:
        names = [metrics] if isinstance(metrics, str) else list(metrics or ())
        if k_values:
            _require_cutoffs(k_values)
            names += [f"{name}@{k}" for name in AT_EVERY_K for k in k_values] + ["mrr", "map"]
        self.specs = parse_metrics(names or DEFAULT_METRICS)
        top = {} if max_grade is None else {"max_grade": max_grade}
        self.conventions = read_conventions(read_conventions(conventions).model_dump() | top)

    def __repr__(self) -> str:
        return f"<Evaluator of {', '.join(spec.name for spec in self.specs)}>"

    def evaluate_ranking(self, items: Iterable[Any], judgments: Any) -> dict[str, float | None]:
        """Each metric of one ranking by its name; None where it is undefined.

        `items` come best first: ids, also integers of NumPy, pairs of an id and its score, or mappings or objects that
        have an id as `key`, `id` or `doc_id`, such as the results of a vector store. Scores order them only where the
        conventions say `order: score`; scores in another order than the items are warned about otherwise.
        `judgments` maps ids to grades, or holds pairs of both, or mappings with an id and a `grade`.
        """
        grades = _read_judgments(judgments)
        ids = self._order_ids(_read_items(items))
        _require_comparable_ids(ids, grades)
        block, duplicates = build_ranking_block(ids, grades)
        if self.conventions.duplicates == "error" and duplicates:
            raise DataQualityError(f"the ranking has {duplicates} duplicate items")
        values = compute_metrics(block, self.specs, self.conventions)
        return {spec.name: _nan_to_none(float(values[spec.key][0])) for spec in self.specs}

    def compare_rankings(
        self, baseline: Iterable[Any], improved: Iterable[Any], judgments: Any
    ) -> dict[str, MetricChange]:
        """Each metric of two rankings for the same query by its name, and the change from the first to the second."""
        judgments = _read_judgments(judgments)
        before, after = self.evaluate_ranking(baseline, judgments), self.evaluate_ranking(improved, judgments)
        return {name: _compare_values(before[name], after[name]) for name in before}

    def _order_ids(self, items: list[Any]) -> list[Hashable]:
        ids = [_get_id(item) for item in items]
        if self.conventions.order == "rank" or not ids:
            _warn_of_other_order(items)
            return ids

        def rank_ids(rows: Ints) -> Ints:  # Python compares text by code point
            texts = [str(ids[row]) for row in rows]
            places = {text: place for place, text in enumerate(sorted(set(texts)))}
            return np.array([places[text] for text in texts], dtype=np.int64)

        scores = np.array([_get_score(item) for item in items], dtype=np.float64)
        order, tied = order_rows(
            np.zeros(len(ids), dtype=np.int64),
            Ragged.of_lengths([len(ids)]),
            build_sort_keys(None, scores, self.conventions),
            rank_ids,
            self.conventions,
        )
        if self.conventions.ties == "error" and tied is not None:
            raise DataQualityError("items have equal scores")
        return ids if order is None else [ids[row] for row in order]


def evaluate_tables(
    rankings: Frame,
    labels: Any,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    queries: Any = None,
    documents: Any = None,
    decisions: Any = None,
    conventions: Conventions | Mapping[str, Any] | None = None,
) -> Frame:
    """One row per system and query, one column per metric key; null where the metric is undefined.

    Tables are of pandas, Arrow or Polars, and the result is of the same kind as `rankings`. `rankings` has
    query_id, doc_id, rank or score, and system if there are several; `labels` has query_id, doc_id and grade;
    `queries` query_id and weight; `documents` doc_id, category and popularity; `decisions` the columns that metrics of
    decisions read. Queries come in the order in which they first appear, and for each the systems.
    """
    import pyarrow.compute as pc

    from udfs.collect import collect_lists
    from udfs.tables import TableReader, convert_like
    from udfs.tabulate import tabulate_metrics

    specs = parse_metrics(metrics)
    conventions = read_conventions(conventions)
    source = TableReader(rankings, "rankings")
    collected = collect_lists(
        source,
        TableReader(labels, "labels"),
        queries=None if queries is None else TableReader(queries, "queries"),
        documents=None if documents is None else TableReader(documents, "documents"),
        decisions=None if decisions is None else TableReader(decisions, "decisions"),
        conventions=conventions,
    )
    if conventions.ties == "error":
        collected.require_no_ties()
    top = collected.labels.grade.max(initial=0.0)
    if conventions.max_grade is None and top > 0:
        conventions = conventions.model_copy(update={"max_grade": float(top)})

    columns = tabulate_metrics(collected, specs, conventions)
    if conventions.duplicates == "error" and pc.any(pc.greater(columns["duplicates"], 0)).as_py():
        raise DataQualityError("a list has the same document twice", hint="duplicates: best keeps the best place")
    return convert_like(source, columns)  # type: ignore[no-any-return]


def _get(item: Any, names: Sequence[str]) -> Any:
    for name in names:
        if isinstance(item, Mapping):
            if name in item:
                return item[name]
        elif hasattr(item, name):
            return getattr(item, name)
    return None


def _get_id(item: Any) -> Hashable:
    if isinstance(item, str | int | np.integer):
        return _plain(item)
    id_ = item[0] if _is_pair(item) else _get(item, _IDS)
    if id_ is None:
        raise InputError(
            f"an item of type {type(item).__name__} has no id",
            hint="give ids, pairs of an id and a score, or items with key, id or doc_id",
        )
    return _plain(id_)


def _plain(id_: Any) -> Hashable:
    """An id as Python compares it: integers of NumPy are integers."""
    return int(id_) if isinstance(id_, np.integer) else id_


def _read_number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        hint = "a pair is an id and then its number"
        raise InputError(f"the {what} {value!r} is not a number", hint=hint) from None
    if math.isnan(number):
        raise InputError(f"a {what} is NaN", hint=f"leave out what has no {what}")
    return number


def _read_grade(value: Any) -> float:
    grade = _read_number(value, "grade")
    if math.isinf(grade):
        raise InputError(f"the grade {value!r} is not finite", hint="grades are finite numbers")
    return grade


def _require_cutoffs(k_values: Any) -> None:
    if isinstance(k_values, str) or not isinstance(k_values, Iterable):
        raise InputError(f"{k_values!r} is no list of cut-offs", hint="write [10], or metrics=['ndcg@10']")
    for value in k_values:
        if not isinstance(value, int | np.integer):
            raise InputError(f"the cut-off {value!r} is not a whole number", hint="name metrics as metrics=['ndcg@10']")


def _is_table(value: Any) -> bool:
    """Whether this is a DataFrame or an Arrow table, which would be taken for a list of its columns."""
    return hasattr(value, "columns") or hasattr(value, "column_names")


def _read_items(items: Any) -> list[Any]:
    if _is_table(items):
        raise InputError("a table is no ranking", hint="give its ids, best first, as in frame['doc_id']")
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise InputError(
            f"a ranking of type {type(items).__name__} has no items", hint="give a list of ids, best first"
        )
    return list(items)


def _require_comparable_ids(ids: Sequence[Hashable], grades: Mapping[Hashable, Any]) -> None:
    """Refuse ids of which none can be judged: 7 is not "7"."""
    kinds = [{"text" if isinstance(id_, str) else type(id_).__name__ for id_ in of} for of in (ids, grades)]
    if all(len(kind) == 1 for kind in kinds) and "text" in kinds[0] ^ kinds[1]:
        ranked, judged = (next(iter(kind)) for kind in kinds)
        raise InputError(f"ranked ids are {ranked} and judged ids are {judged}", hint="convert one, as with str(id)")


def _is_pair(item: Any) -> bool:
    """Whether an item is a plain pair; a named tuple has its id by name."""
    return isinstance(item, tuple | list) and len(item) == 2 and not hasattr(item, "_fields")


def _read_judgments(judgments: Any) -> dict[Hashable, Any]:
    """Grades by id, from a mapping, from pairs, or from mappings with an id and a grade."""
    if _is_table(judgments):
        hint = "give a mapping, as in dict(zip(frame['doc_id'], frame['grade']))"
        raise InputError("a table is no mapping of ids to grades", hint=hint)
    if isinstance(judgments, Mapping):
        return {_plain(id_): _read_grade(grade) for id_, grade in judgments.items()}
    if isinstance(judgments, str | bytes) or not isinstance(judgments, Iterable):
        hint = "give a mapping of ids to grades, pairs of both, or mappings with doc_id and grade"
        raise InputError(f"judgments are of type {type(judgments).__name__}", hint=hint)
    grades: dict[Hashable, Any] = {}
    for judgment in judgments:
        grade = judgment[1] if _is_pair(judgment) else _get(judgment, ("grade",))
        if grade is None:
            raise InputError(
                f"a judgment of type {type(judgment).__name__} has no grade",
                hint="give a mapping of ids to grades, pairs of both, or mappings with doc_id and grade",
            )
        grades[_get_id(judgment)] = _read_grade(grade)
    return grades


def _warn_of_other_order(items: list[Any]) -> None:
    """Warn where every item has a score, and the scores do not fall."""
    scores = [item[1] if _is_pair(item) else _get(item, ("score",)) for item in items]
    if any(score is None for score in scores):
        return
    scores = [_read_number(score, "score") for score in scores]
    rise = next((at for at in range(1, len(scores)) if scores[at] > scores[at - 1]), None)
    if rise is not None:
        warnings.warn(
            f"items are scored in the order given, but item {rise + 1} has a higher score than item {rise}: sort them, "
            "or use Conventions(order='score')",
            stacklevel=4,
        )


def _get_score(item: Any) -> float:
    score = item[1] if _is_pair(item) else _get(item, ("score",))
    if score is None:
        raise InputError("an item has no score", hint="order: rank takes the items as they come")
    return _read_number(score, "score")


def _nan_to_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def _compare_values(before: float | None, after: float | None) -> MetricChange:
    if before is None or after is None:
        return MetricChange(before, after, None, None)
    return MetricChange(before, after, after - before, (after - before) / before if before else None)
