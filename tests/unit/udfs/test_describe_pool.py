"""The posteriors of a partition do not depend on the pieces in which they are computed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.udfs.test_posterior import draw_pool, fit
from udfs.spark import prior as worker


def build_rows(queries: int = 60, documents: int = 12) -> pa.Table:
    """The pool of `draw_pool` as Spark passes it, with the rows of a query apart from each other."""
    pool, ranks = draw_pool(queries, documents)
    size = queries * documents
    numbers = {name: getattr(pool, name) for name in ("clicks", "examinations", "depth", "rate", "floor", "fixed")}
    table = pa.table(
        {
            "query_id": [f"q{row // documents}" for row in range(size)],
            "doc_id": [f"d{row}" for row in range(size)],
            **{name: pa.array(values) for name, values in numbers.items()},
            "ranks": pa.array(ranks.tolist(), pa.list_(pa.int32())),
        }
    )
    return table.take(pa.array(np.random.default_rng(5).permutation(size)))


def describe(rows: pa.Table, sizes: list[int]) -> pa.Table:
    pool, _ = draw_pool()
    run = worker.describe_pool(fit(pool))
    batches = list(run(rows.to_batches(max_chunksize=100)))
    sizes.extend(batch.num_rows for batch in batches)
    return pa.Table.from_batches(batches).sort_by([("query_id", "ascending"), ("doc_id", "ascending")])


@pytest.mark.parametrize("rows_per_piece", [1, 12, 50, 719, 720])
def test_pieces_of_whole_queries_give_the_same_bits(rows_per_piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, whole, sizes = build_rows(), list[int](), list[int]()
    expected = describe(rows, whole)
    monkeypatch.setattr(worker, "_ROWS_PER_PIECE", rows_per_piece)
    assert repr(describe(rows, sizes).to_pylist()) == repr(expected.to_pylist())  # NaN included
    assert whole == [720]
    assert sum(sizes) == 720
    assert all(size % 12 == 0 and size < rows_per_piece + 12 for size in sizes), "whole queries of 12 documents"


def test_a_query_with_millions_of_documents_is_one_batch() -> None:
    """Above some million rows NumPy's text becomes several Arrow arrays, which a batch cannot hold."""
    sources = worker._SOURCES.take(pa.array(np.zeros(5_000_000, dtype=np.int64)))
    assert isinstance(sources, pa.Array)
    assert isinstance(pa.array(np.full(5_000_000, "human")), pa.ChunkedArray), "no longer the case: simplify"
