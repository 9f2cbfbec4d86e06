"""All metrics of a run over one block, with the conventions applied in this one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from udfs.block import Block
from udfs.conventions import Conventions
from udfs.ragged import Floats
from udfs.registry import Argument, Spec


def score(block: Block, specs: Sequence[Spec], conventions: Conventions) -> dict[str, Floats]:
    """Per metric key, one number per list; NaN where the metric is undefined."""
    with np.errstate(invalid="ignore"):
        return {spec.key: _score(block, spec, conventions) for spec in specs}


def _score(block: Block, spec: Spec, conventions: Conventions) -> Floats:
    arguments = spec.arguments
    condense = bool(arguments.pop("judged_only", False))
    if arguments.get("rel", 0) is None:
        arguments["rel"] = conventions.rel
    if arguments.get("gmax", 0) is None:
        arguments["gmax"] = conventions.max_grade
    seen = _seen(block, spec, "condense" if condense else conventions.unjudged)
    values = np.asarray(spec.metric.kernel(seen, spec.k, **arguments), dtype=np.float64).copy()
    if spec.metric.defined != "always":
        _apply_edges(values, block, spec, arguments, conventions)
        if seen is not block and conventions.unjudged == "cut_then_condense" and not condense:
            values[(block.ranked.lengths > 0) & (seen.ranked.lengths == 0)] = np.nan
    if conventions.nothing_returned == "skip":
        values[block.ranked.lengths == 0] = np.nan
    return values


def _seen(block: Block, spec: Spec, unjudged: str) -> Block:
    """The lists as the kernel sees them: whole, or with the unjudged documents taken out."""
    if not spec.metric.condensable or unjudged in ("zero", "auto"):
        return block
    return block.condensed(spec.k if unjudged == "cut_then_condense" else None)


def _apply_edges(
    values: Floats, block: Block, spec: Spec, arguments: Mapping[str, Argument], conventions: Conventions
) -> None:
    if spec.metric.defined == "gain":
        hopeless = block.ideal_dcg("linear", spec.k) == 0
    else:
        hopeless = block.relevant(arguments.get("rel")) == 0  # type: ignore[arg-type]
    values[hopeless] = np.nan if conventions.no_relevant == "undefined" else 0.0
    values[block.labelled.lengths == 0] = np.nan
