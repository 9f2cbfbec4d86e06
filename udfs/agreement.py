"""Carry the metrics between two lists to Spark: how alike two systems' answers to a query are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from udfs.arrow import offsets_of, values_of
from udfs.block import Block
from udfs.conventions import Conventions
from udfs.lists import assemble
from udfs.ragged import Ragged
from udfs.registry import parse_all
from udfs.score import score_pairs

Batches = Iterable[pa.RecordBatch]


def agree_lists(metrics: Sequence[str], conventions: Conventions) -> Callable[[Batches], Batches]:
    """The function that compares the lists `rank`, `doc` with `other_rank`, `other_doc`, row by row."""

    def run(batches: Batches) -> Batches:
        specs = parse_all(metrics)
        for batch in batches:
            values = score_pairs(_block(batch, ""), _block(batch, "other_"), specs, conventions)
            carried = {name: batch.column(name) for name in ("system", "query_id", "weight")}
            scored = {name: pa.array(numbers, from_pandas=True) for name, numbers in values.items()}
            yield pa.RecordBatch.from_pydict(carried | scored)

    return run


def _block(batch: pa.RecordBatch, side: str) -> Block:
    lists = Ragged(offsets_of(batch, f"{side}rank"))
    rank, doc = (values_of(batch, f"{side}{name}").astype(np.int64) for name in ("rank", "doc"))
    nothing = Ragged.of_lengths(np.zeros(lists.size, dtype=np.int64))
    return assemble(lists, rank, doc, np.full(lists.rows, np.nan), nothing, np.zeros(0))[0]
