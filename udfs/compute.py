"""Run metric kernels over blocks; the conventions are applied here and nowhere else."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from schemas.errors import ConfigurationError, DataQualityError
from udfs.block import Block
from udfs.conventions import Conventions
from udfs.drawn import draw_blocks
from udfs.draws import Grades
from udfs.exposure import Exposure
from udfs.graded import MAX_EXP2_GRADE
from udfs.ragged import Floats, Ragged
from udfs.registry import POOL, Argument, Metric, MetricSpec

WITHOUT_GRADES = ("always", "labelled")  # metrics that do not depend on the grades of labels
SCOPES = {"list": "one ranked list", "pair": "two lists of a query", "system": "a whole system"}


def varies_by_grades(spec: MetricSpec) -> bool:
    """Whether a metric is another one where labels have other grades, and so has draws."""
    return spec.metric.defined not in WITHOUT_GRADES


def compute_metrics(block: Block, specs: Sequence[MetricSpec], conventions: Conventions) -> dict[str, Floats]:
    """Per metric key, one number per list; NaN where the metric is undefined."""
    for spec in specs:
        _require_scope(spec.metric, "list")
        _require_data(spec.metric, block)
    require_small_grades(float(block.labels.max(initial=0.0)), specs)
    with np.errstate(invalid="ignore"):
        return {spec.key: _compute_values(block, spec, conventions) for spec in specs}


def compute_pools(block: Block, specs: Sequence[MetricSpec], conventions: Conventions) -> dict[str, Floats]:
    """Per metric that is a ratio, under its key and `POOL`, the divisor of each list."""
    divisors = {}
    for spec in specs:
        if spec.metric.pool is not None:
            prepared, arguments = prepare_block(block, spec, conventions)
            divisor = spec.metric.pool(prepared, spec.k, **arguments)
            divisors[spec.key + POOL] = np.asarray(divisor, dtype=np.float64)
    return divisors


def compute_draws(
    block: Block, grades: Grades, specs: Sequence[MetricSpec], conventions: Conventions
) -> tuple[Floats, dict[str, Floats]]:
    """Metrics [specs × draws × lists] for each row of `grades`, and the divisors of ratios [draws × lists] by key.

    Kernels run on copies of the block that share all but grades; a metric without labels is computed once.
    """
    values = np.empty((len(specs), len(grades), block.size))
    divisors = {spec.key + POOL: np.empty(values.shape[1:]) for spec in specs if spec.metric.pool is not None}
    constant = [place for place, spec in enumerate(specs) if not varies_by_grades(spec)]
    for place in constant:
        values[place] = compute_metrics(block, [specs[place]], conventions)[specs[place].key]
    prepared = [prepare_block(block, spec, conventions) for spec in specs]
    distinct = list({id(lists): lists for lists, _ in prepared}.values())
    copy_of = [[lists is other for other in distinct].index(True) for lists, _ in prepared]
    with np.errstate(invalid="ignore"):
        for draw, copies in enumerate(draw_blocks(distinct, grades)):
            for place, spec in enumerate(specs):
                copy, arguments = copies[copy_of[place]], prepared[place][1]
                if place not in constant:
                    values[place, draw] = _run_kernel(copy, block.ranked, spec, arguments, conventions)
                if spec.metric.pool is not None:
                    divisors[spec.key + POOL][draw] = spec.metric.pool(copy, spec.k, **arguments)
    return values, divisors


def compute_pair_metrics(
    block: Block, other: Block, specs: Sequence[MetricSpec], conventions: Conventions
) -> dict[str, Floats]:
    """Per key of a metric between two lists, one number per pair; NaN where the metric is undefined.

    The blocks are aligned: list i of both belongs to the same query, and `row_data["doc"]` means the same
    document in both. For a hand-over between stages, `block` is the later one and `other` the earlier.
    """
    if block.size != other.size:
        raise ValueError(f"{block.size} lists cannot be compared with {other.size}")
    values = {}
    block, other = (each.cut(conventions.depth) for each in (block, other))
    for spec in specs:
        _require_scope(spec.metric, "pair")
        _require_data(spec.metric, block)
        arguments = _resolve_arguments(spec, conventions)
        values[spec.key] = np.array(spec.metric.kernel(block, other, spec.k, **arguments), dtype=np.float64)
        if spec.metric.defined != "always":
            undefined = np.isnan(values[spec.key])
            values[spec.key][undefined] = np.nan if conventions.no_relevant == "undefined" else 0.0
            values[spec.key][block.labelled.lengths == 0] = np.nan
        if conventions.nothing_returned == "skip":
            values[spec.key][block.ranked.lengths == 0] = np.nan
    return values


def compute_pair_pools(
    block: Block, other: Block, specs: Sequence[MetricSpec], conventions: Conventions
) -> dict[str, Floats]:
    """Per metric between two lists that is a ratio, under its key and `POOL`, the divisor of each pair."""
    block, other = (each.cut(conventions.depth) for each in (block, other))
    return {
        spec.key + POOL: np.asarray(
            spec.metric.pool(block, other, spec.k, **_resolve_arguments(spec, conventions)), dtype=np.float64
        )
        for spec in specs
        if spec.metric.pool is not None
    }


def compute_system_metrics(
    exposure_at: Callable[[int | None], Exposure], specs: Sequence[MetricSpec], conventions: Conventions
) -> dict[str, Floats]:
    """Per key of a metric of scope `system`, one number per system; `exposure_at` counts what is in the top k."""
    for spec in specs:
        _require_scope(spec.metric, "system")
    return {
        spec.key: np.asarray(
            spec.metric.kernel(exposure_at(spec.k), spec.k, **_resolve_arguments(spec, conventions)), dtype=np.float64
        )
        for spec in specs
    }


def require_small_grades(top: float, specs: Sequence[MetricSpec]) -> None:
    """Refuse grades that are too large for the gain of a metric; `top` is the largest."""
    for spec in specs:
        if top > MAX_EXP2_GRADE and spec.arguments.get("gain") == "exp2":
            raise DataQualityError(
                f"the largest grade is {top:g}, but the gain of {spec.name} is 2^grade − 1, for grades up to "
                f"{MAX_EXP2_GRADE:g}",
                hint=f"use gain=linear, as in {spec.metric.name}(gain=linear)@10, or map the grades to a smaller scale",
            )


def prepare_block(block: Block, spec: MetricSpec, conventions: Conventions) -> tuple[Block, dict[str, Argument]]:
    """What the kernel of a metric is called with: the lists as it sees them, and its arguments."""
    arguments = _resolve_arguments(spec, conventions)
    block = block.cut(conventions.depth)
    judged_only = bool(arguments.pop("judged_only", False))
    unjudged = "condense" if judged_only else conventions.unjudged
    if not spec.metric.condensable or unjudged in ("zero", "auto", "posterior"):
        return block, arguments
    if spec.metric.defined in WITHOUT_GRADES and not judged_only:
        return block, arguments
    return block.condense(spec.k if unjudged == "cut_then_condense" else None), arguments


def compute_prepared(
    block: Block, spec: MetricSpec, arguments: Mapping[str, Argument], conventions: Conventions
) -> Floats:
    """The values of a metric on lists as it sees them, with arguments from `prepare_block`; an empty list scores 0."""
    with np.errstate(invalid="ignore"):
        counted = conventions.model_copy(update={"nothing_returned": "zero"})
        return _run_kernel(block, block.ranked, spec, arguments, counted)


def _require_scope(metric: Metric, scope: str) -> None:
    if metric.scope != scope:
        raise ConfigurationError(
            f"{metric.name} is not a metric of {SCOPES[scope]}", hint=f"it is one of {SCOPES[metric.scope]}"
        )


def _require_data(metric: Metric, block: Block) -> None:
    missing = [name for name in metric.reads if not {name} & (block.row_data.keys() | block.list_data.keys())]
    if missing:
        columns = " and ".join(missing)
        table = f"{' and '.join(metric.needs)} with {columns}"
        if missing == ["subtopics"]:
            table = "documents with category, or judgments with subtopics"
        raise ConfigurationError(f"{metric.name} needs {columns}", hint=f"give the table {table}")


def _resolve_arguments(spec: MetricSpec, conventions: Conventions) -> dict[str, Argument]:
    """The arguments of the kernel, with the run's `rel` and `max_grade` where the metric does not set its own."""
    arguments = spec.arguments
    if arguments.get("rel", 0) is None:
        arguments["rel"] = conventions.rel
    if arguments.get("gmax", 0) is None:
        arguments["gmax"] = conventions.max_grade
    return {f"{name}_" if keyword.iskeyword(name) else name: value for name, value in arguments.items()}


def _compute_values(block: Block, spec: MetricSpec, conventions: Conventions) -> Floats:
    prepared, arguments = prepare_block(block, spec, conventions)
    return _run_kernel(prepared, block.ranked, spec, arguments, conventions)


def _run_kernel(
    prepared: Block, ranked: Ragged, spec: MetricSpec, arguments: Mapping[str, Argument], conventions: Conventions
) -> Floats:
    """The values of a metric on the lists as it sees them; `ranked` are the lists as they were returned."""
    metric = spec.metric
    values = np.array(metric.kernel(prepared, spec.k, **arguments), dtype=np.float64)
    if metric.defined in ("relevant", "gain"):
        _apply_conventions(values, prepared, spec, arguments, conventions)
        judged_only = spec.arguments.get("judged_only", False)
        if prepared.ranked is not ranked and conventions.unjudged == "cut_then_condense" and not judged_only:
            values[(ranked.lengths > 0) & (prepared.ranked.lengths == 0)] = np.nan
    if metric.defined == "labelled":
        values[prepared.labelled.lengths == 0] = np.nan
    # A decision not to retrieve is not a failure to answer.
    if conventions.nothing_returned == "skip" and "decisions" not in metric.needs:
        values[ranked.lengths == 0] = np.nan
    return values


def _apply_conventions(
    values: Floats, block: Block, spec: MetricSpec, arguments: Mapping[str, Argument], conventions: Conventions
) -> None:
    """Set the values of queries without relevant documents (or gain), and of queries without labels."""
    rel = None if spec.metric.defined == "gain" else arguments.get("rel")
    hopeless = (block.count_relevant(rel) == 0) | np.isnan(values)  # type: ignore[arg-type]
    values[hopeless] = np.nan if conventions.no_relevant == "undefined" else 0.0
    values[block.labelled.lengths == 0] = np.nan
