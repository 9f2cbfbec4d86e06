"""The columns of `query_metrics`, on Spark and in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from udfs.block import Array, Block
from udfs.collect import ListCollection
from udfs.compute import (
    compute_draws,
    compute_metrics,
    compute_pair_metrics,
    compute_pair_pools,
    compute_pools,
    varies_by_grades,
)
from udfs.conventions import Conventions
from udfs.drawn import draw_blocks
from udfs.draws import Grades, LabelDraws, find_posterior
from udfs.ragged import Bools, Floats, Ints
from udfs.registry import POOL, MetricSpec
from udfs.tables import pack_bytes

COUNTS = ("retrieved", "duplicates", "tied", "labelled", "relevant", "judged")
SD, DELTA_SD = "__sd", "__delta_sd"  # suffixes of the columns of a metric's spread over draws
# The column of all draws, as the bytes of 32-bit floats: those of the first metric that varies by grades, of the
# second, … Spark passes bytes on as they are, and the numbers of a list one by one.
DRAWS = "draws"
_LISTS_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class _Request:
    own: Sequence[MetricSpec]  # metrics of one list
    paired: Sequence[MetricSpec]  # metrics between a list and that of the earlier stage
    conventions: Conventions
    earlier: int | None
    pooled: bool


def tabulate_metrics(
    collected: ListCollection,
    specs: Sequence[MetricSpec],
    conventions: Conventions,
    *,
    earlier: int | None = None,
    baseline: int | None = None,
    pooled: bool = False,
) -> dict[str, pa.Array]:
    """One row per list: system, query, the counts behind its metrics, and a column per metric.

    `earlier` is the system of the earlier stage, whose lists the metrics of two lists compare with; `pooled` adds the
    divisors of ratios. Where labels are drawn, metrics and divisors are means over the posterior draws in which they
    are defined (for human grades, those of the grades as they are). Metrics of one list then have their standard
    deviation over these draws in `__sd`, that of their difference from the system `baseline` in `__delta_sd`, and all
    draws in `draws`.
    """
    own = [spec for spec in specs if earlier is None or spec.metric.scope == "list"]
    paired = [spec for spec in specs if spec not in own]
    request = _Request(own=own, paired=paired, conventions=conventions, earlier=earlier, pooled=pooled)
    parts = [_tabulate_block(collected, request, *block) for block in collected.blocks()]

    def join_parts(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array(np.concatenate([part[name] for part in parts] or [np.zeros(0)]), kind, from_pandas=True)

    drawn = collected.labels.drawn
    divisors = [spec.key + POOL for spec in specs if pooled and spec.metric.pool is not None]
    spreads = [spec.key + SD for spec in own] if drawn is not None else []
    columns = {
        "system": collected.systems.take(pa.array(collected.system)),
        "query_id": collected.queries.take(pa.array(collected.query)),
        "weight": pa.array(collected.list_data["weight"]),
        **{name: join_parts(name, pa.int32()) for name in COUNTS},
        **{name: join_parts(name, pa.float64()) for name in (*[s.key for s in specs], *divisors, *spreads)},
    }
    if drawn is None:
        return columns
    varying = [spec.key for spec in own if varies_by_grades(spec)]
    draws = np.concatenate([part[DRAWS] for part in parts] or [np.zeros((0, len(varying), 0))])
    if baseline is not None:
        spread = _spread_differences(collected, draws, find_posterior(drawn.draws), baseline)
        by_key = dict(zip(varying, spread.T, strict=True))
        for key in [spec.key for spec in own]:
            values = by_key[key] if key in by_key else _spread_constant(collected, columns[key + SD], baseline)
            columns[key + DELTA_SD] = pa.array(values, pa.float64(), from_pandas=True)
    return columns | {DRAWS: pack_bytes(draws.astype("<f4", copy=False))}


def _tabulate_block(
    collected: ListCollection, request: _Request, part: slice, block: Block, duplicates: Ints
) -> dict[str, Array]:
    conventions, drawn = request.conventions, collected.labels.drawn
    values: dict[str, Array] = {
        "retrieved": block.ranked.lengths,
        "duplicates": duplicates,
        "tied": collected.tied[part],
        "labelled": block.labelled.lengths,
        "relevant": block.count_relevant(conventions.rel),
        "judged": block.ranked.counts(block.shown),
    }
    other = None if request.earlier is None else collected.select_block(request.earlier, collected.query[part])
    if drawn is not None:
        values |= _tabulate_draws(block, other, request, drawn.draws, collected.draw_labels(part))
    if drawn is None or not drawn.draws.replace_values:
        values |= compute_metrics(block, request.own, conventions)
        values |= {} if other is None else compute_pair_metrics(block, other, request.paired, conventions)
        values |= compute_pools(block, request.own, conventions) if request.pooled else {}
        if other is not None and request.pooled:
            values |= compute_pair_pools(block, other, request.paired, conventions)
    return values


def _tabulate_draws(
    block: Block, other: Block | None, request: _Request, draws: LabelDraws, grades: Grades
) -> dict[str, Array]:
    """The draws of the metrics of one list, their spread, and the means of all metrics and divisors."""
    posterior = find_posterior(draws)
    numbers, divisors = compute_draws(block, grades, request.own, request.conventions)
    means, spreads = average_draws(numbers[:, posterior].swapaxes(0, 1))
    varying = numbers[[varies_by_grades(spec) for spec in request.own]]
    values: dict[str, Array] = {DRAWS: np.ascontiguousarray(varying.transpose(2, 0, 1), dtype=np.float32)}
    for spec, mean, spread in zip(request.own, means, spreads, strict=True):
        values |= {spec.key: mean, spec.key + SD: spread}
    values |= {name: average_draws(rows[posterior])[0] for name, rows in divisors.items()}
    if other is not None and request.paired:
        pairs = [
            compute_pair_metrics(first, second, request.paired, request.conventions)
            | compute_pair_pools(first, second, request.paired, request.conventions)
            for first, second in draw_blocks([block, other], grades[posterior])
        ]
        values |= {key: average_draws(np.stack([pair[key] for pair in pairs]))[0] for key in pairs[0]}
    return values


def _spread_differences(collected: ListCollection, draws: Floats, posterior: slice, baseline: int) -> Floats:
    """Per list and metric, the standard deviation over draws of the difference from the baseline's list of its query.

    NaN for the baseline, and where it has no list of the query.
    """
    spread = np.full(draws.shape[:2], np.nan)
    against, rows = _pair_lists(collected, baseline)
    for start in range(0, len(rows), _LISTS_AT_ONCE):
        some = rows[start : start + _LISTS_AT_ONCE]
        pair = [draws[lists][..., posterior].astype(np.float64) for lists in (some, against[some])]
        spread[some] = average_draws((pair[0] - pair[1]).transpose(2, 0, 1))[1]
    return spread


def _spread_constant(collected: ListCollection, deviation: pa.Array, baseline: int) -> Floats:
    """The same for a metric that no draw changes: 0 where both lists have a deviation, which is 0."""
    against, rows = _pair_lists(collected, baseline)
    defined = deviation.is_valid().to_numpy(zero_copy_only=False)
    spread = np.full(len(defined), np.nan)
    spread[rows[defined[rows] & defined[against[rows]]]] = 0.0
    return spread


def _pair_lists(collected: ListCollection, baseline: int) -> tuple[Ints, Ints]:
    """Per list, the baseline's list of its query or −1; and the lists of other systems that have one."""
    against = collected.index[baseline, collected.query]
    return against, np.flatnonzero((against >= 0) & (collected.system != baseline))


def average_draws(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation over the first axis; draws that are NaN are left out.

    One draw after the other is added, whatever the shape, so that the last bit of a list's mean does not depend on the
    lists beside it; relative to a draw, so that draws that are all equal have that mean exactly.
    """
    if not np.isnan(values).any():
        return _average_numbers(values)
    origin = values[0]
    for row in values[1:]:
        origin = np.where(np.isnan(origin), row, origin)
    count, total, square = np.zeros((3, *origin.shape))
    for row in values:
        count += ~np.isnan(row)
        total += np.nan_to_num(row - origin)
    mean = origin + _divide(total, count, count > 0)
    for row in values:
        square += np.nan_to_num(row - mean) ** 2
    return mean, np.sqrt(_divide(square, count - 1, count > 1))


def _average_numbers(values: Floats) -> tuple[Floats, Floats]:
    """The same to the last bit where no draw is NaN, in a third of the time."""
    origin, count = values[0], len(values)
    total, square, part = np.zeros((3, *origin.shape))
    for row in values:
        total += np.subtract(row, origin, out=part)
    mean = origin + total / count
    for row in values:
        np.subtract(row, mean, out=part)
        square += np.multiply(part, part, out=part)
    return mean, np.sqrt(square / (count - 1)) if count > 1 else np.full(origin.shape, np.nan)


def _divide(above: Floats, below: Floats, where: Bools) -> Floats:
    ratio: Floats = np.divide(above, below, out=np.full(above.shape, np.nan), where=where)
    return ratio
