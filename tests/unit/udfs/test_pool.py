"""Pools of queries, from one stream of lists, evidence, grades and opinions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from udfs.conventions import Conventions
from udfs.posterior.factors import ABSENT, UNKNOWN
from udfs.spark.pool import EVIDENCE, FIXED, FLOOR, OPINION, PoolRequest, collect_pool

SHOWN, CANDIDATE, PRODUCTION = range(3)  # the slots of one serving system and a candidate
REQUEST = PoolRequest(serving=1, compared=1, top=2, conventions=Conventions())
Row = tuple[str, str, int, int | None, float | None, float | None, float | None]
ROWS: list[Row] = [
    ("q", "a", EVIDENCE, None, 1.5, 4.0, 0.25),
    ("q", "b", EVIDENCE, None, 0.5, 8.0, 0.5),
    ("q", "a", SHOWN, 2, None, None, None),
    ("q", "b", SHOWN, 1, None, None, None),
    ("q", "c", CANDIDATE, 1, None, None, None),
    ("q", "c", CANDIDATE, 2, None, None, None),  # a duplicate: what follows moves up
    ("q", "a", CANDIDATE, 3, None, None, None),
    ("q", "d", CANDIDATE, 4, None, None, None),  # below the top, and nobody was shown it
    ("q", "e", FIXED, None, 3.0, None, None),
    ("q", "a", FLOOR, None, 2.0, None, None),
    ("new", "x", PRODUCTION, 1, None, None, None),
    ("only", "x", CANDIDATE, 1, None, None, None),
    ("nothing", "x", FLOOR, None, 2.0, None, None),
]


def collect(rows: list[Row], request: PoolRequest = REQUEST, **columns: Any) -> dict[tuple[str, str], dict[str, Any]]:
    names = ("query_id", "doc_id", "kind", "rank", "a", "b", "c")
    kinds = (pa.string(), pa.string(), pa.int32(), pa.int32(), pa.float64(), pa.float64(), pa.float64())
    values = zip(*rows, strict=True)
    arrays = {name: pa.array(column, kind) for name, column, kind in zip(names, values, kinds, strict=True)}
    table = pa.table(arrays | columns)
    collected = [row for batch in collect_pool(request)(table.to_batches(max_chunksize=5)) for row in batch.to_pylist()]
    return {(row.pop("query_id"), row.pop("doc_id")): row for row in collected}


def test_a_pool_has_what_was_shown_judged_and_listed_at_the_top() -> None:
    pool = collect(ROWS)
    assert {key: row["ranks"] for key, row in pool.items()} == {
        ("q", "a"): [2, 2],
        ("q", "b"): [1, ABSENT],
        ("q", "c"): [ABSENT, 1],
        ("q", "e"): [ABSENT, ABSENT],
        ("new", "x"): [1, ABSENT],
        ("only", "x"): [UNKNOWN, 1],
    }
    numbers = ("clicks", "examinations", "depth", "floor", "fixed")
    assert [pool["q", "a"][name] for name in numbers] == [1.5, 4.0, 0.25, 2.0, None]
    assert [pool["q", "e"][name] for name in numbers] == [0.0, 0.0, 0.0, 0.0, 3.0]
    assert {(row["query_clicks"], row["query_examinations"]) for (query, _), row in pool.items() if query == "q"} == {
        (2.0, 12.0)
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(ROWS))
    assert collect([ROWS[at] for at in order]) == collect(ROWS)


def test_a_query_without_lists_has_a_pool() -> None:
    pool = collect([row for row in ROWS if row[2] in (EVIDENCE, SHOWN)])
    assert {key: row["ranks"] for key, row in pool.items()} == {("q", "a"): [2, ABSENT], ("q", "b"): [1, ABSENT]}
    assert collect([row for row in ROWS if row[0] == "nothing"]) == {}


def test_lists_of_one_query_are_placed_apart() -> None:
    rows: list[Row] = [
        ("q", "a", CANDIDATE, 1, None, None, None),
        ("q", "b", CANDIDATE, 2, None, None, None),
        ("q", "b", CANDIDATE, 1, None, None, None),
    ]
    together = collect(rows)
    apart = collect(rows, list=pa.array(["web", "web", "app"]))
    assert [together["q", doc]["ranks"][1] for doc in "ab"] == [2, 1]  # at one place, so by doc_id
    assert [apart["q", doc]["ranks"][1] for doc in "ab"] == [1, 1]


def test_opinions_come_along() -> None:
    rows = [*ROWS, ("q", "b", OPINION, None, None, None, None), ("q", "z", OPINION, None, None, None, None)]
    opinion = pa.array([None] * len(ROWS) + ["good", "bad"], pa.string())
    request = PoolRequest(serving=1, compared=1, top=2, conventions=Conventions(), opinions=("opinion_0",))
    pool = collect(rows, request, opinion_0=opinion)
    assert pool.keys() == collect(ROWS).keys()
    assert {key: row["opinion_0"] for key, row in pool.items() if row["opinion_0"]} == {("q", "b"): "good"}
