"""Carry the metric kernels to Spark: a function for `DataFrame.mapInArrow`.

It takes one row per ranked list, with documents and labels as arrays, and answers one row per list with
a column per metric. Nothing in here is called once per query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.block import Block
from udfs.conventions import Conventions
from udfs.lists import assemble
from udfs.match import best_labels, match
from udfs.ragged import Floats, Ints, Ragged
from udfs.registry import Spec, parse_all
from udfs.score import pools, score, score_pairs

# The columns that the function consumes, with their types; those for `documents`, `decisions` and
# `earlier` are there when a metric needs them. A document is a 64-bit hash, a missing category −1.
RANKED = {"rank": "array<int>", "doc": "array<bigint>"}
LABELLED = {"label": "array<double>", "label_doc": "array<bigint>"}
DESCRIBED = {"category": "array<bigint>", "popularity": "array<double>"}
LABEL_DESCRIBED = {"label_category": "array<bigint>"}
EARLIER = {"earlier_rank": "array<int>", "earlier_doc": "array<bigint>"}
DECIDED = {
    "decided_expert": "bigint",
    "decided_optimal_expert": "bigint",
    "decided_retrieved": "double",
    "decided_retrieval_needed": "double",
}
CONSUMED = RANKED | LABELLED | DESCRIBED | LABEL_DESCRIBED | EARLIER | DECIDED
COUNTS = ("retrieved", "duplicates", "labelled", "relevant", "judged")
ROWS_PER_BLOCK = 1 << 18  # bounds the memory of a Python worker; one longer list makes a block of its own

Batches = Iterable[pa.RecordBatch]
Values = npt.NDArray[np.generic]


def score_lists(metrics: Sequence[str], conventions: Conventions) -> Callable[[Batches], Batches]:
    """The function that scores lists by `metrics`: the columns in `CONSUMED` become counts and metrics."""

    def run(batches: Batches) -> Batches:
        specs = parse_all(metrics)  # parsed where it runs: a kernel is code, and stays out of the closure
        for batch in batches:
            lengths = [np.diff(_offsets(batch, name)) for name in ("rank", "label")]
            for part in Ragged.of_lengths(np.sum(lengths, axis=0)).slices(ROWS_PER_BLOCK):
                yield _scored(batch.slice(part.start, part.stop - part.start), specs, conventions)

    return run


def _scored(batch: pa.RecordBatch, specs: Sequence[Spec], conventions: Conventions) -> pa.RecordBatch:
    block, duplicates, earlier = _blocks(batch)
    counts: dict[str, Ints] = {
        "retrieved": block.ranked.lengths,
        "duplicates": duplicates,
        "labelled": block.labelled.lengths,
        "relevant": block.relevant(conventions.rel),
        "judged": block.ranked.counts(block.judged),
    }
    values = score(block, [spec for spec in specs if spec.metric.scope == "list"], conventions)
    if earlier is not None:
        values |= score_pairs(block, earlier, [s for s in specs if s.metric.scope == "pair"], conventions)
    carried = {name: batch.column(name) for name in batch.schema.names if name not in CONSUMED}
    counted = {name: pa.array(counts[name].astype(np.int32)) for name in COUNTS}
    # Spark takes the columns of a batch by their order, so it must be that of the contract.
    ordered = {spec.key: values[spec.key] for spec in specs} | pools(block, specs, conventions)
    scored = {name: pa.array(numbers, from_pandas=True) for name, numbers in ordered.items()}
    return pa.RecordBatch.from_pydict(carried | counted | scored)


def _blocks(batch: pa.RecordBatch) -> tuple[Block, Ints, Block | None]:
    """The lists of a batch, how many duplicates each had, and the lists of the earlier stage if there are any."""
    names = set(batch.schema.names)
    labelled = Ragged(_offsets(batch, "label"))
    label, label_doc = _floats(batch, "label"), _ints(batch, "label_doc")
    keep = best_labels(labelled, label_doc, label)
    label_data = {"category": _ints(batch, "label_category")[keep]} if "label_category" in names else {}
    labelled, label, label_doc = labelled.keep(keep), label[keep], label_doc[keep]

    def assembled(rank: str, doc: str, row_data: dict[str, Values], list_data: dict[str, Values]) -> tuple[Block, Ints]:
        lists, docs = Ragged(_offsets(batch, rank)), _ints(batch, doc)
        grade = match(lists, docs, labelled, label_doc, label)
        return assemble(
            lists,
            _ints(batch, rank),
            docs,
            grade,
            labelled,
            label,
            row_data=row_data,
            label_data=label_data,
            list_data=list_data,
        )

    row_data = {name: _flat(batch, name) for name in DESCRIBED if name in names}
    decided = {
        n.removeprefix("decided_"): batch.column(n).to_numpy(zero_copy_only=False) for n in DECIDED if n in names
    }
    block, duplicates = assembled("rank", "doc", row_data, decided)
    earlier = assembled("earlier_rank", "earlier_doc", {}, {})[0] if "earlier_rank" in names else None
    return block, duplicates, earlier


def _offsets(batch: pa.RecordBatch, name: str) -> Ints:
    offsets: Ints = batch.column(name).offsets.to_numpy().astype(np.int64)
    start: int = offsets[0]
    return offsets - start


def _flat(batch: pa.RecordBatch, name: str) -> Values:
    values: Values = batch.column(name).flatten().to_numpy(zero_copy_only=False)
    return values


def _ints(batch: pa.RecordBatch, name: str) -> Ints:
    return _flat(batch, name).astype(np.int64)


def _floats(batch: pa.RecordBatch, name: str) -> Floats:
    return _flat(batch, name).astype(np.float64)
