"""Every list of a collection scored: the columns that `query_metrics` has, on Spark and in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from udfs.block import Array
from udfs.collect import Collected
from udfs.conventions import Conventions
from udfs.registry import POOL, Spec
from udfs.score import pools, score, score_pairs

WHOLE = pa.int32()
COUNTS = ("retrieved", "duplicates", "tied", "labelled", "relevant", "judged")


def scored(
    collected: Collected,
    specs: Sequence[Spec],
    conventions: Conventions,
    *,
    earlier: int | None = None,
    pooled: bool = False,
) -> dict[str, pa.Array]:
    """One row per list: whose it is, the counts that its numbers rest on, and a column per metric.

    `earlier` is the system whose lists an earlier stage hands over; with `pooled`, what ratios were divided by
    is told too.
    """
    own = [spec for spec in specs if earlier is None or spec.metric.scope == "list"]
    paired = [spec for spec in specs if spec not in own]
    parts: list[dict[str, Array]] = []
    for part, block, duplicates in collected.blocks():
        made: dict[str, Array] = {
            "retrieved": block.ranked.lengths,
            "duplicates": duplicates,
            "tied": collected.tied[part],
            "labelled": block.labelled.lengths,
            "relevant": block.relevant(conventions.rel),
            "judged": block.ranked.counts(block.judged),
            **score(block, own, conventions),
        }
        if earlier is not None:
            made |= score_pairs(block, collected.of(earlier, collected.query[part]), paired, conventions)
        parts.append(made | (pools(block, specs, conventions) if pooled else {}))

    counts = dict.fromkeys(COUNTS, WHOLE)
    numbers = dict.fromkeys([spec.key for spec in specs], pa.float64())
    divisors = {spec.key + POOL: pa.float64() for spec in specs if pooled and spec.metric.pool is not None}

    def joined(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array(np.concatenate([part[name] for part in parts] or [np.zeros(0)]), kind, from_pandas=True)

    return {
        "system": collected.systems.take(pa.array(collected.system)),
        "query_id": collected.queries.take(pa.array(collected.query)),
        "weight": pa.array(collected.list_data["weight"]),
        **{name: joined(name, kind) for name, kind in (counts | numbers | divisors).items()},
    }
