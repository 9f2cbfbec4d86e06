"""The rows that Spark sends: cut between queries, and scored as the same tables are in memory."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from udfs.arrow import Wanted, score_queries, whole_queries
from udfs.conventions import Conventions

STREAM = pa.schema(
    [
        ("query_id", pa.string()),
        ("system", pa.int32()),
        ("doc", pa.int64()),
        ("doc_id", pa.string()),
        ("rank", pa.int32()),
        ("value", pa.float64()),
        ("asked", pa.struct([("weight", pa.float64()), ("device", pa.string())])),
    ]
)


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(1, 6), st.integers(1, 12))
def test_no_table_ends_within_a_query_and_no_row_is_lost(sizes: list[int], batch: int, rows: int) -> None:
    query = [f"q{n}" for n, size in enumerate(sizes) for _ in range(size)]
    stream = pa.table({"query_id": pa.array(query, pa.string()), "row": pa.array(range(len(query)), pa.int64())})
    tables = list(whole_queries(stream.to_batches(max_chunksize=batch), rows))
    assert [row for table in tables for row in table["row"].to_pylist()] == list(range(len(query)))
    held = [set(table["query_id"].to_pylist()) for table in tables]
    assert sum(map(len, held)) == len(sizes)
    # More than was asked for comes only with what waited for its query to end, or by a last batch.
    assert all(table.num_rows < 2 * (rows + max(sizes)) + batch for table in tables)


def answers(rows: list[dict[str, object]], systems: tuple[str, ...] = ("s", "t")) -> list[dict[str, object]]:
    columns = ("system", "query_id", "device", "weight", "retrieved", "tied", "ndcg_at_3")
    run = score_queries(Wanted(("ndcg@3",), Conventions(), systems, columns))
    batches = run(pa.Table.from_pylist(rows, STREAM).to_batches(max_chunksize=2))
    return [row for made in batches for row in made.to_pylist()]


def test_every_system_answers_for_a_query_that_only_one_of_them_ranked() -> None:
    rows: list[dict[str, object]] = [
        {"query_id": "q", "doc": 7, "value": 3.0},
        {"query_id": "q", "system": 1, "doc": 7, "doc_id": "a", "rank": 1},
        {"query_id": "q", "asked": {"weight": 2.0, "device": "ios"}},
    ]
    first, second = answers(rows)
    assert (first["system"], first["ndcg_at_3"], first["retrieved"], first["device"]) == ("s", 0.0, 0, "ios")
    assert (second["system"], second["ndcg_at_3"], second["weight"]) == ("t", 1.0, 2.0)


def test_the_rows_of_two_queries_may_come_mixed() -> None:
    rows: list[dict[str, object]] = [
        {"query_id": query, "system": 0, "doc": doc, "doc_id": str(doc), "rank": doc}
        for doc in (2, 1)
        for query in ("q", "r")
    ]
    rows += [{"query_id": query, "doc": doc, "value": 1.0} for query, doc in (("r", 2), ("q", 1))]
    found = {row["query_id"]: row["ndcg_at_3"] for row in answers(rows, ("s",))}
    assert found["q"] == 1.0
    assert 0 < float(str(found["r"])) < 1.0


def test_a_query_listed_twice_counts_once_whatever_comes_first() -> None:
    listed: list[dict[str, object]] = [
        {"query_id": "q", "asked": {"weight": weight, "device": device}}
        for weight, device in ((2.0, "ios"), (2.0, "android"), (3.0, None))
    ]
    for rows in (listed, listed[::-1]):
        (row,) = answers(rows, ("s",))
        assert (row["weight"], row["device"]) == (2.0, "android")


def test_documents_at_one_place_are_told_apart_by_name_only_there() -> None:
    ranked = {"b": 1, "a": 1, "c": None}
    rows: list[dict[str, object]] = [
        {"query_id": "q", "system": 0, "doc": ord(doc), "doc_id": doc, "rank": rank, "value": 0.5}
        for doc, rank in ranked.items()
    ]
    (row,) = answers([*rows, {"query_id": "q", "doc": ord("a"), "value": 1.0}], ("s",))
    assert row["tied"] == 1
    assert round(float(str(row["ndcg_at_3"])), 4) == 0.6309  # b stands before a: by doc_id, last first
