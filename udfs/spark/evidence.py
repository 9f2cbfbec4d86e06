"""Read and change the evidence of labels inside Spark workers: functions for `DataFrame.mapInArrow`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from udfs.draws import PosteriorDraws
from udfs.tables import pack_bytes, slice_bytes, unpack_records

Batches = Iterable[pa.RecordBatch]

COUNTS_DDL = "query_id string, clicks double, examinations double"
FIXED = "_fixed"  # a column beside those of labels: the grade by a judge


def read_counts(layout: np.dtype[np.void]) -> Callable[[Batches], Batches]:
    """The function from labels with evidence to clicks due and examinations of each."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            labels = batch.filter(batch[PosteriorDraws.column].is_valid())
            evidence = unpack_records(pa.chunked_array([labels[PosteriorDraws.column]]), layout, PosteriorDraws.column)
            numbers = {name: np.array(evidence[name]) for name in ("clicks", "examinations")}
            yield pa.RecordBatch.from_pydict({"query_id": labels["query_id"], **numbers})

    return run


def fix_grades(layout: np.dtype[np.void]) -> Callable[[Batches], Batches]:
    """The function from labels with a column `FIXED` to labels with these grades, which alone count as shown."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            column = PosteriorDraws.column
            evidence = unpack_records(pa.chunked_array([batch[column]]), layout, column)
            grade = batch[FIXED].to_numpy(zero_copy_only=False)
            evidence["shown"] = ~np.isnan(grade)
            evidence["fixed"] = np.where(np.isnan(grade), evidence["fixed"], grade)
            labels = batch.drop_columns([FIXED])
            packed = slice_bytes(pack_bytes(evidence), 0, len(evidence))
            yield labels.set_column(labels.schema.get_field_index(column), column, packed)

    return run
