"""Carry the metric kernels to Spark: a function for `DataFrame.mapInArrow`.

It takes one row per ranked list, with the documents as arrays, and answers one row per list with a
column per metric. Nothing in here is called once per query.
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
from udfs.score import score

ARRAYS = {"rank": "array<int>", "doc": "array<bigint>", "label_doc": "array<bigint>", "label": "array<double>"}
COUNTS = ("retrieved", "duplicates", "labelled", "relevant", "judged")
DOCUMENTS_PER_BLOCK = 1 << 20  # bounds the memory of a Python worker; one longer list makes a block of its own

Batches = Iterable[pa.RecordBatch]


def score_lists(metrics: Sequence[str], conventions: Conventions) -> Callable[[Batches], Batches]:
    """The function that scores lists by `metrics`: the columns in `ARRAYS` become counts and metrics."""

    def run(batches: Batches) -> Batches:
        specs = parse_all(metrics)  # parsed where it runs: a kernel is code, and stays out of the closure
        for batch in batches:
            documents = Ragged(_offsets(batch, "rank"))
            for part in documents.slices(DOCUMENTS_PER_BLOCK):
                yield _scored(batch.slice(part.start, part.stop - part.start), specs, conventions)

    return run


def _scored(batch: pa.RecordBatch, specs: Sequence[Spec], conventions: Conventions) -> pa.RecordBatch:
    block, duplicates = block_of(batch)
    counts: dict[str, Ints] = {
        "retrieved": block.ranked.lengths,
        "duplicates": duplicates,
        "labelled": block.labelled.lengths,
        "relevant": block.relevant(conventions.rel),
        "judged": block.ranked.counts(block.judged),
    }
    carried = {name: batch.column(name) for name in batch.schema.names if name not in ARRAYS}
    counted = {name: pa.array(counts[name].astype(np.int32)) for name in COUNTS}
    scored = {key: pa.array(values, from_pandas=True) for key, values in score(block, specs, conventions).items()}
    return pa.RecordBatch.from_pydict(carried | counted | scored)


def block_of(batch: pa.RecordBatch) -> tuple[Block, Ints]:
    """The lists of a batch as a block, and how many duplicates each had."""
    lists, labelled = Ragged(_offsets(batch, "rank")), Ragged(_offsets(batch, "label"))
    label, label_doc = _values(batch, "label").astype(np.float64), _values(batch, "label_doc").astype(np.int64)
    keep = best_labels(labelled, label_doc, label)
    labelled, label, label_doc = labelled.keep(keep), label[keep], label_doc[keep]
    doc = _values(batch, "doc").astype(np.int64)
    grade: Floats = match(lists, doc, labelled, label_doc, label)
    return assemble(lists, _values(batch, "rank").astype(np.int64), doc, grade, labelled, label)


def _offsets(batch: pa.RecordBatch, name: str) -> Ints:
    offsets: Ints = batch.column(name).offsets.to_numpy().astype(np.int64)
    start: int = offsets[0]
    return offsets - start


def _values(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.generic]:
    values: npt.NDArray[np.generic] = batch.column(name).flatten().to_numpy(zero_copy_only=False)
    return values
