"""The evidence of labels as it is read and changed in Spark workers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from schemas.errors import InputError
from tests.helpers.drawn import LAYOUT, PLAN, pack_evidence, unpack_evidence
from udfs.spark.evidence import FIXED, fix_grades, read_counts

CODES = list(range(len(PLAN.factors)))
LABELS = pa.table(
    {
        "query_id": ["q", "q", "r"],
        "doc_id": ["a", "b", "a"],
        "evidence": pack_evidence(
            [
                (1, CODES, 1.5, 4.0, 0.25, 0.1, 2.0, np.nan),
                (1, CODES, 0.5, 8.0, 0.5, 0.1, 0.0, 3.0),
                (0, CODES, 0.0, 0.0, 0.0, 0.2, 0.0, np.nan),
            ]
        ),
    }
)


def test_counts_are_those_of_the_evidence() -> None:
    rows = [row for batch in read_counts(LAYOUT)(LABELS.to_batches(max_chunksize=2)) for row in batch.to_pylist()]
    assert [(row["query_id"], row["clicks"], row["examinations"]) for row in rows] == [
        ("q", 1.5, 4.0),
        ("q", 0.5, 8.0),
        ("r", 0.0, 0.0),
    ]


def test_only_what_a_judge_graded_counts_as_shown() -> None:
    graded = LABELS.append_column(FIXED, pa.array([1.0, None, 0.0]))
    fixed = pa.Table.from_batches(list(fix_grades(LAYOUT)(graded.to_batches(max_chunksize=2))))
    assert fixed.schema == LABELS.schema
    before, after = unpack_evidence(LABELS), unpack_evidence(fixed)
    assert after["shown"].tolist() == [1, 0, 1]
    assert after["fixed"].tolist() == [1.0, 3.0, 0.0]
    for name in ("codes", "clicks", "examinations", "depth", "rate", "floor"):
        assert np.array_equal(after[name], before[name])


def test_evidence_of_another_prior_is_an_error() -> None:
    short = LABELS.set_column(2, "evidence", pa.array([b"\x01"] * 3))
    with pytest.raises(InputError, match="must have 53 bytes in every row"):
        list(read_counts(LAYOUT)(short.to_batches()))
