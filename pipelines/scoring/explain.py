"""How the metrics of one list come about: what each rank adds, the ideal ranking, and each metric's arithmetic.

Every number is taken from the block that the kernels compute with, or from the functions declared with a metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from udfs.block import Block
from udfs.compute import compute_metrics, compute_pools, compute_prepared, prepare_block
from udfs.conventions import Conventions
from udfs.lists import build_ranking_block
from udfs.ragged import Ragged
from udfs.registry import POOL, Argument, MetricSpec
from udfs.tabulate import average_draws

VARIES = "(varies)"  # the document at a rank of the ideal ranking, which is another in every draw


@dataclass(frozen=True)
class RankedDocument:
    """One document at its rank.

    `gain` × `discount` is its term in the sum that the metric is, None for a metric that is no such sum; `adds` is by
    how much the value of the list up to this rank exceeds that of the list above it, None where it is undefined.
    """

    doc_id: str
    grade: float | None
    gain: float | None
    discount: float | None
    adds: float | None
    spread: float | None = None  # of the grade over draws, where it is their mean
    source: str | None = None  # what a drawn grade rests on: behaviour, human or prior


@dataclass(frozen=True)
class DrawnLabel:
    """The grades of a document in every draw of its posterior, and what it rests on."""

    grades: tuple[float, ...]
    source: str


@dataclass(frozen=True)
class RankLine:
    """One rank: the document there, and that of the ideal ranking; None below the end of either."""

    rank: int
    document: RankedDocument | None
    ideal: RankedDocument | None


@dataclass(frozen=True)
class ExplainedRanking:
    """The upper ranks of a list beside its ideal, and how many ranks more the metric sees."""

    lines: list[RankLine]
    more: int


@dataclass(frozen=True)
class MetricFigure:
    """One metric of one list: its value, and the arithmetic behind it."""

    metric: str
    value: float | None
    how: str


def explain_ranking(
    docs: Sequence[str], labels: Mapping[str, float], conventions: Conventions, spec: MetricSpec, *, depth: int
) -> ExplainedRanking:
    """The list as the metric sees it, rank by rank down to `depth`, beside the ideal ranking."""
    best = [doc for doc, _ in sorted(labels.items(), key=lambda item: (-item[1], item[0]))]
    sides = [_prepare_list(ids, labels, conventions, spec) for ids in (docs, best)]
    seen = max(block.ranked.rows for block, _, _ in sides)
    seen = min(seen, spec.k or seen)
    listed, ideal = (_explain_documents(*side, spec, conventions, depth=min(seen, depth)) for side in sides)
    lines = [
        RankLine(rank, document, perfect)
        for rank, (document, perfect) in enumerate(zip_longest(listed, ideal), start=1)
    ]
    return ExplainedRanking(lines, more=seen - len(lines))


def _prepare_list(
    ids: Sequence[str], labels: Mapping[str, float], conventions: Conventions, spec: MetricSpec
) -> tuple[Block, list[str], dict[str, Argument]]:
    """A list as the metric sees it, its documents, and the arguments of the kernel."""
    block, arguments = prepare_block(build_ranking_block(ids, labels)[0], spec, conventions)
    return block, [ids[doc] for doc in block.row_data["doc"].astype(np.int64)], arguments


def _explain_documents(
    block: Block,
    ids: Sequence[str],
    arguments: Mapping[str, Argument],
    spec: MetricSpec,
    conventions: Conventions,
    *,
    depth: int,
) -> list[RankedDocument]:
    gains = discounts = np.full(block.ranked.rows, np.nan)
    if spec.metric.terms is not None:
        gains, discounts = spec.metric.terms(block, spec.k, **arguments)
    size = min(depth, len(ids))
    # The lists of length 0, 1, 2 …: their values are computed by the kernel, like that of the whole list.
    prefixes = Ragged.of_lengths(np.arange(size + 1))
    lists = Block(
        ranked=prefixes,
        grade=block.grade[prefixes.place - 1],
        labelled=Ragged.of_lengths(np.full(size + 1, len(block.labels))),
        labels=np.tile(block.labels, size + 1),
    )
    adds = np.diff(compute_prepared(lists, spec, arguments, conventions))
    return [
        RankedDocument(
            doc_id=ids[at],
            grade=_nan_to_none(block.grade[at]),
            gain=_nan_to_none(gains[at]),
            discount=_nan_to_none(discounts[at]),
            adds=_nan_to_none(adds[at]),
        )
        for at in range(size)
    ]


def _nan_to_none(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


def explain_drawn_ranking(
    docs: Sequence[str], labels: Mapping[str, DrawnLabel], conventions: Conventions, spec: MetricSpec, *, depth: int
) -> ExplainedRanking:
    """The same on drawn labels: every number is its mean over draws, and so is the ideal ranking, rank by rank."""
    rankings = [explain_ranking(docs, grades, conventions, spec, depth=depth) for grades in _split_draws(labels)]
    lines = []
    for rank, drawn in enumerate(zip(*(ranking.lines for ranking in rankings), strict=True), start=1):
        document = _average_documents([line.document for line in drawn])
        ideal = _average_documents([line.ideal for line in drawn])
        label = None if document is None else labels.get(document.doc_id)
        if document is not None and label is not None:
            spread = float(np.std(label.grades, ddof=1))
            document = replace(document, spread=spread, source=label.source)
        lines.append(RankLine(rank, document, None if ideal is None else replace(ideal, doc_id=VARIES)))
    return ExplainedRanking(lines, more=rankings[0].more)


def _split_draws(labels: Mapping[str, DrawnLabel]) -> list[dict[str, float]]:
    """The grades of all documents, one draw after the other."""
    draws = len(next(iter(labels.values())).grades)
    return [{doc: label.grades[draw] for doc, label in labels.items()} for draw in range(draws)]


def _average_documents(drawn: Sequence[RankedDocument | None]) -> RankedDocument | None:
    """The means over draws of what is known of the document at one rank; draws without a number are left out."""
    documents = [document for document in drawn if document is not None]
    if not documents:
        return None

    def average(numbers: Iterable[float | None]) -> float | None:
        defined = [number for number in numbers if number is not None]
        return float(np.mean(defined)) if defined else None

    return RankedDocument(
        doc_id=documents[0].doc_id,
        grade=average(document.grade for document in documents),
        gain=average(document.gain for document in documents),
        discount=average(document.discount for document in documents),
        adds=average(document.adds for document in documents),
    )


def explain_drawn_metrics(
    docs: Sequence[str], labels: Mapping[str, DrawnLabel], conventions: Conventions, specs: Sequence[MetricSpec]
) -> list[MetricFigure]:
    """Every metric that needs only the list and its labels: the mean over draws in which it is defined, as in a run."""
    plain = _select_explained(specs)
    shown = np.array([doc in labels and labels[doc].source != "prior" for doc in docs])
    values = []
    for grades in _split_draws(labels):
        block, _ = build_ranking_block(docs, grades)
        rows = {**block.row_data, "shown": shown[block.row_data["doc"].astype(np.int64)]}
        values.append(compute_metrics(replace(block, row_data=rows), plain, conventions))
    figures = []
    for spec in plain:
        means, spreads = average_draws(np.stack([drawn[spec.key] for drawn in values]))
        value, spread = _nan_to_none(means[0]), _nan_to_none(spreads[0])
        over = f"mean over {len(values)} draws of the grades"
        figures.append(MetricFigure(spec.name, value, over if not spread else f"{over}, ± {spread:.4f}"))
    return figures


def _select_explained(specs: Sequence[MetricSpec]) -> list[MetricSpec]:
    """The metrics that need only the list and its labels."""
    return [spec for spec in specs if spec.metric.scope == "list" and not spec.metric.needs]


def explain_metrics(
    docs: Sequence[str], labels: Mapping[str, float], conventions: Conventions, specs: Sequence[MetricSpec]
) -> list[MetricFigure]:
    """Every metric that needs only the list and its labels, with the value that a run computes."""
    block, _ = build_ranking_block(docs, labels)
    plain = _select_explained(specs)
    values = compute_metrics(block, plain, conventions)
    figures = []
    for spec in plain:
        value = _nan_to_none(values[spec.key][0])
        figures.append(MetricFigure(spec.name, value, _write_arithmetic(block, value, spec, conventions)))
    return figures


def _write_arithmetic(block: Block, value: float | None, spec: MetricSpec, conventions: Conventions) -> str:
    """The metric's steps and its ratio; its formula where it declares neither."""
    prepared, arguments = prepare_block(block, spec, conventions)
    steps = None if spec.metric.steps is None else spec.metric.steps(prepared, spec.k, **arguments)
    if spec.metric.ratio is None:
        return _get_formula(spec) if steps is None else steps
    numerator_name, divisor_name = spec.metric.ratio
    divisor = float(compute_pools(block, [spec], conventions)[spec.key + POOL][0])
    if steps is not None:
        return f"{steps}; / {divisor_name} {divisor:.4f}"
    numerator = (value or 0.0) * divisor
    return f"{_format_number(numerator)} {numerator_name} / {_format_number(divisor)} {divisor_name}"


def _format_number(number: float) -> str:
    return f"{number:.4f}".rstrip("0").rstrip(".")


def _get_formula(spec: MetricSpec) -> str:
    _, _, text = spec.metric.explanation.partition("Formula:")
    return " ".join(text.partition("\n\n")[0].split())
