"""All metrics of a run over one block, with the conventions applied in this one place."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence

import numpy as np

from schemas.errors import ConfigurationError
from udfs.block import Block
from udfs.conventions import Conventions
from udfs.ragged import Floats
from udfs.registry import Argument, Metric, Spec


def score(block: Block, specs: Sequence[Spec], conventions: Conventions) -> dict[str, Floats]:
    """Per metric key, one number per list; NaN where the metric is undefined."""
    for spec in specs:
        _check(spec.metric, "list", block)
    with np.errstate(invalid="ignore"):
        return {spec.key: _score(block, spec, conventions) for spec in specs}


def score_pairs(block: Block, other: Block, specs: Sequence[Spec], conventions: Conventions) -> dict[str, Floats]:
    """Per key of a metric between two lists, one number per pair; NaN where the metric is undefined.

    The blocks are aligned: list i of both belongs to the same query, and `row_data["doc"]` means the same
    document in both. For a hand-over between stages, `block` is the later one and `other` the earlier.
    """
    if block.size != other.size:
        raise ValueError(f"{block.size} lists cannot be compared with {other.size}")
    values = {}
    for spec in specs:
        _check(spec.metric, "pair", block)
        arguments = _arguments(spec, conventions)
        values[spec.key] = np.array(spec.metric.kernel(block, other, spec.k, **arguments), dtype=np.float64)
        if spec.metric.defined != "always":
            nothing = np.isnan(values[spec.key])
            values[spec.key][nothing] = np.nan if conventions.no_relevant == "undefined" else 0.0
            values[spec.key][block.labelled.lengths == 0] = np.nan
        if conventions.nothing_returned == "skip":
            values[spec.key][block.ranked.lengths == 0] = np.nan
    return values


def _check(metric: Metric, scope: str, block: Block) -> None:
    if metric.scope != scope:
        other = {"list": "one ranked list", "pair": "two lists of a query", "system": "everything that a system showed"}
        raise ConfigurationError(
            f"{metric.name} is not a metric of {other[scope]}", hint=f"it is one of {other[metric.scope]}"
        )
    missing = [name for name in metric.reads if not {name} & (block.row_data.keys() | block.list_data.keys())]
    if missing:
        tables, columns = " and ".join(metric.needs), " and ".join(missing)
        raise ConfigurationError(f"{metric.name} needs {columns}", hint=f"give the table {tables} with {columns}")


def _arguments(spec: Spec, conventions: Conventions) -> dict[str, Argument]:
    """The arguments of the kernel, with the run's settings where the metric does not say."""
    arguments = spec.arguments
    if arguments.get("rel", 0) is None:
        arguments["rel"] = conventions.rel
    if arguments.get("gmax", 0) is None:
        arguments["gmax"] = conventions.max_grade
    return {f"{name}_" if keyword.iskeyword(name) else name: value for name, value in arguments.items()}


def _score(block: Block, spec: Spec, conventions: Conventions) -> Floats:
    metric, arguments = spec.metric, _arguments(spec, conventions)
    condense = bool(arguments.pop("judged_only", False))
    seen = _seen(block, spec, "condense" if condense else conventions.unjudged, asked=condense)
    values = np.array(metric.kernel(seen, spec.k, **arguments), dtype=np.float64)
    if metric.defined in ("relevant", "gain"):
        _apply_edges(values, block, spec, arguments, conventions)
        if seen is not block and conventions.unjudged == "cut_then_condense" and not condense:
            values[(block.ranked.lengths > 0) & (seen.ranked.lengths == 0)] = np.nan
    # A decision not to retrieve is not a failure to answer.
    if conventions.nothing_returned == "skip" and "decisions" not in metric.needs:
        values[block.ranked.lengths == 0] = np.nan
    return values


def _seen(block: Block, spec: Spec, unjudged: str, *, asked: bool) -> Block:
    """The lists as the kernel sees them: whole, or with the unjudged documents taken out."""
    if not spec.metric.condensable or unjudged in ("zero", "auto"):
        return block
    if spec.metric.defined == "always" and not asked:  # it does not look at labels
        return block
    return block.condensed(spec.k if unjudged == "cut_then_condense" else None)


def _apply_edges(
    values: Floats, block: Block, spec: Spec, arguments: Mapping[str, Argument], conventions: Conventions
) -> None:
    if spec.metric.defined == "gain":
        hopeless = block.ideal_dcg("linear", spec.k) == 0
    else:
        hopeless = block.relevant(arguments.get("rel")) == 0  # type: ignore[arg-type]
    hopeless |= np.isnan(values)
    values[hopeless] = np.nan if conventions.no_relevant == "undefined" else 0.0
    values[block.labelled.lengths == 0] = np.nan
