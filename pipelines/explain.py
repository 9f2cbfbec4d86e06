"""The arithmetic of one list: grades, gains and discounts by rank, the ideal beside it, and each metric in figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from udfs.conventions import Conventions
from udfs.evaluator import Evaluator
from udfs.registry import Spec


@dataclass(frozen=True)
class Line:
    """One rank: what stands there, what it earns, and what the ideal list would have earned."""

    rank: int
    doc_id: str | None
    grade: float | None
    gain: float
    discount: float
    ideal_doc: str | None
    ideal_grade: float | None
    ideal_gain: float

    @property
    def earned(self) -> float:
        return self.gain * self.discount

    @property
    def ideal_earned(self) -> float:
        return self.ideal_gain * self.discount


@dataclass(frozen=True)
class Figure:
    """One metric of one list: its value, and how it comes about."""

    metric: str
    value: float | None
    how: str


def ranking(docs: Sequence[str], labels: Mapping[str, float], conventions: Conventions, spec: Spec) -> list[Line]:
    """The list as the metric sees it, rank by rank, with the ideal list beside it."""
    seen = _seen(docs, labels, conventions, spec)
    ideal = sorted(labels.items(), key=lambda item: (-item[1], item[0]))
    depth = max(len(seen), min(len(ideal), spec.k or len(ideal)))
    kind = str(spec.arguments.get("gain", "exp2"))
    lines = []
    for place in range(min(depth, spec.k) if spec.k else depth):
        doc = seen[place] if place < len(seen) else None
        grade = None if doc is None else labels.get(doc)
        best, top = ideal[place] if place < len(ideal) else (None, None)
        lines.append(
            Line(
                rank=place + 1,
                doc_id=doc,
                grade=grade,
                gain=_gain(grade, kind),
                discount=1 / math.log2(place + 2),
                ideal_doc=best,
                ideal_grade=top,
                ideal_gain=_gain(top, kind),
            )
        )
    return lines


def figures(
    docs: Sequence[str], labels: Mapping[str, float], conventions: Conventions, specs: Sequence[Spec]
) -> list[Figure]:
    """Every metric that looks at one list and its labels, by the same kernels as in a run."""
    plain = [spec for spec in specs if spec.metric.scope == "list" and not spec.metric.needs]
    values = Evaluator(metrics=[spec.name for spec in plain], conventions=conventions).evaluate_ranking(docs, labels)
    return [Figure(spec.name, values[spec.name], _how(docs, labels, conventions, spec)) for spec in plain]


def _how(docs: Sequence[str], labels: Mapping[str, float], conventions: Conventions, spec: Spec) -> str:
    """The figures that a metric is made of; its formula where they are too many to write down."""
    lines = ranking(docs, labels, conventions, spec)
    rel = spec.arguments.get("rel") or conventions.rel
    wanted = [doc for doc, grade in labels.items() if _relevant(grade, rel)]
    held = [line for line in lines if line.doc_id is not None]
    hits = [line.rank for line in held if _relevant(line.grade, rel)]
    name = spec.metric.name
    if name in ("ndcg", "dcg"):
        terms = " + ".join(f"{line.gain:g}×{line.discount:.4f}" for line in lines if line.gain) or "0"
        total, best = sum(line.earned for line in lines), sum(line.ideal_earned for line in lines)
        return f"DCG = {terms} = {total:.4f}" + (f"; / IDCG {best:.4f}" if name == "ndcg" else "")
    if name == "recall":
        return f"{len(hits)} relevant found / {len(wanted)} relevant in all"
    if name == "precision":
        return f"{len(hits)} relevant / {spec.k or len(held)} places"
    if name == "hit":
        return f"first relevant at rank {hits[0]}" if hits else "no relevant document"
    if name == "mrr":
        return f"1 / rank {hits[0]} of the first relevant" if hits else "no relevant document"
    return _formula(spec)


def _formula(spec: Spec) -> str:
    _, _, text = spec.metric.explanation.partition("Formula:")
    return " ".join(text.partition("\n\n")[0].split())


def _seen(docs: Sequence[str], labels: Mapping[str, float], conventions: Conventions, spec: Spec) -> list[str]:
    """The documents that count, best first, as the convention for unjudged ones has it."""
    once = list(dict.fromkeys(docs))
    unjudged = "condense" if spec.arguments.get("judged_only") else conventions.unjudged
    if not spec.metric.condensable or unjudged in ("zero", "auto"):
        return once
    cut = once[: spec.k] if unjudged == "cut_then_condense" else once
    return [doc for doc in cut if doc in labels]


def _gain(grade: float | None, kind: str) -> float:
    if grade is None or grade <= 0:
        return 0.0
    return grade if kind == "linear" else 2.0**grade - 1


def _relevant(grade: float | None, rel: object) -> bool:
    return grade is not None and (grade >= rel if isinstance(rel, int | float) else grade > 0)
