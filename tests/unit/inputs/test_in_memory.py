"""Tables in memory against their contracts: casts, reasons and counts as on Spark."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.inputs.in_memory import conform_arrow
from schemas.errors import InputError
from schemas.inputs import DOCUMENTS, JUDGMENTS, QUERIES, RANKINGS
from udfs.tables import TableReader

# Each row with the reason to reject it.
AWKWARD = [
    ({"system": "a", "query_id": "q", "doc_id": "d", "rank": "1"}, None),
    ({"system": "a", "query_id": "q", "doc_id": "d", "rank": " 2 "}, None),
    ({"system": "a", "query_id": "q", "doc_id": "d", "rank": "3.0"}, None),
    ({"system": "a", "query_id": "q", "doc_id": "d", "rank": "3.5"}, "rank: not an int"),
    ({"system": "a", "query_id": "q", "doc_id": "d", "rank": "4294967296"}, "rank: not an int"),
    ({"system": "a", "query_id": "q", "doc_id": "d", "rank": "-1"}, "rank: below 0"),
    ({"system": "a", "query_id": "q", "doc_id": "d", "score": "1e3"}, None),
    ({"system": "a", "query_id": "q", "doc_id": "d", "score": "one"}, "score: not a double"),
    ({"system": "a", "query_id": "q", "doc_id": "d", "score": "NaN"}, "score: not a finite number"),
    ({"system": "a", "query_id": "q", "doc_id": "d", "score": "Infinity"}, "score: not a finite number"),
    ({"system": "a", "query_id": "q", "doc_id": "d"}, "rank and score: empty"),
    ({"system": "  ", "query_id": "", "doc_id": "d", "rank": "1"}, "system: empty"),
    ({"system": "a", "query_id": None, "doc_id": "d", "rank": "x"}, "query_id: empty"),
    ({"system": "a", "query_id": "q", "doc_id": "é" * 5001, "rank": "1"}, "doc_id: longer than 10,000 bytes"),
]


def build_awkward_rankings() -> pa.Table:
    schema = pa.schema([(name, pa.string()) for name in RANKINGS.names])
    return pa.Table.from_pylist([row for row, _ in AWKWARD], schema)


def count_reasons() -> dict[str, int]:
    reasons = [reason for _, reason in AWKWARD if reason is not None]
    return {reason: reasons.count(reason) for reason in sorted(set(reasons))}


def test_every_row_is_kept_or_rejected_for_its_first_reason() -> None:
    got = conform_arrow(TableReader(build_awkward_rankings(), "rankings"), RANKINGS)
    assert dict(got.count.rejected) == count_reasons()
    assert (got.count.read, got.count.kept) == (14, 4)
    assert got.rows["rank"].to_pylist() == [1, 2, 3, None]
    assert got.rows["score"].to_pylist() == [None, None, None, 1000.0]


@pytest.mark.parametrize(
    ("ids", "texts"),
    [
        (pa.array([7, 8], pa.int16()), ["7", "8"]),
        (pa.array([7.0, 8.5]), ["7.0", "8.5"]),
        (pa.array(["7", "8"]).dictionary_encode(), ["7", "8"]),
        (pa.array(["7", "8"], pa.string_view()), ["7", "8"]),
        (pa.array([Decimal("7.10"), Decimal("8.00")]), ["7.10", "8.00"]),
    ],
)
def test_ids_of_any_type_become_text(ids: pa.Array, texts: list[str]) -> None:
    raw = pa.table({"query_id": ids, "doc_id": ids, "grade": [1, 2]})
    rows = conform_arrow(TableReader(raw, "judgments"), JUDGMENTS).rows
    assert rows["query_id"].to_pylist() == rows["doc_id"].to_pylist() == texts
    assert rows["grade"].to_pylist() == [1.0, 2.0]


def test_numbers_with_gaps_of_pandas_and_booleans_are_numbers() -> None:
    raw = pd.DataFrame({"query_id": ["a", "b"], "doc_id": ["x", "y"], "grade": [True, False], "chance": [np.nan, 0.5]})
    rows = conform_arrow(TableReader(raw, "judgments"), JUDGMENTS).rows
    assert rows["grade"].to_pylist() == [1.0, 0.0]
    assert rows["chance"].to_pylist() == [None, 0.5]


SEVERAL = [
    (["x", "y"], ["x", "y"], None),
    (["y", None, " ", "é"], ["y", "é"], None),
    ([], [], None),
    (None, None, None),
    (["a", "é" * 5001], None, "category: longer than 10,000 bytes"),
]


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.string_view()), pa.list_view(pa.string())])
def test_arrays_of_text_lose_their_blanks(kind: pa.DataType) -> None:
    raw = pa.table({"doc_id": list("abcde"), "category": pa.array([row[0] for row in SEVERAL], kind)})
    got = conform_arrow(TableReader(raw, "documents"), DOCUMENTS)
    assert got.rows["category"].to_pylist() == [texts for _, texts, why in SEVERAL if why is None]
    assert dict(got.count.rejected) == {"category: longer than 10,000 bytes": 1}


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array(["x", "", None]), [["x"], [], None]),
        (pa.array([1, 2, None]), [["1"], ["2"], None]),
        (pa.array([[1, 2], [], None]), [["1", "2"], [], None]),
        (pa.array(["x", "y", None]).dictionary_encode(), [["x"], ["y"], None]),
    ],
)
def test_a_value_that_is_no_array_is_an_array_of_one(values: pa.Array, texts: list[list[str] | None]) -> None:
    raw = pa.table({"doc_id": ["a", "b", "c"], "category": values})
    assert conform_arrow(TableReader(raw, "documents"), DOCUMENTS).rows["category"].to_pylist() == texts


def test_arrays_of_documents_are_exploded_with_their_rank() -> None:
    raw = pl.DataFrame({"system": ["a", "a", "b"], "query_id": ["q", "r", "q"], "ranked_items": [["x", "y"], [], None]})
    got = conform_arrow(TableReader(raw, "rankings"), RANKINGS)
    assert got.rows.to_pylist() == [
        {"system": "a", "query_id": "q", "doc_id": "x", "rank": 1},
        {"system": "a", "query_id": "q", "doc_id": "y", "rank": 2},
    ]
    assert dict(got.count.rejected) == {"doc_id: empty": 1}
    scored = pa.table({"system": ["a"], "query_id": ["q"], "ranked_items": [[{"id": "x", "score": 0.5}]]})
    rows = conform_arrow(TableReader(scored, "rankings"), RANKINGS).rows
    assert rows.select(["doc_id", "rank", "score"]).to_pylist() == [{"doc_id": "x", "rank": 1, "score": 0.5}]


def test_missing_and_renamed_columns_are_reported_as_on_spark() -> None:
    raw = pa.table({"query": ["a"], "w": [2]})
    with pytest.raises(
        InputError, match=r"queries lacks query_id \(inputs\.queries\): found query, w\. .*\{query_id: query\}"
    ):
        conform_arrow(TableReader(raw, "queries"), QUERIES)
    rows = conform_arrow(TableReader(raw, "queries"), QUERIES, {"query_id": "query", "weight": "w"}).rows
    assert rows.select(["query_id", "weight"]).to_pylist() == [{"query_id": "a", "weight": 2.0}]


@pytest.mark.parametrize(
    ("header", "fix"),
    [
        ("query_id;weight", r'options: \{sep: ";"\}'),
        ("weight\tquery_id", r'options: \{sep: "\\t"\}'),
        ("q\0u\0e\0r\0y\0_\0i\0d\0", "UTF-16"),
        ("query;weight", r"columns: \{query_id: NAME\}"),
        (" Query_ID ", r'columns: \{query_id: " Query_ID "\}'),
        ("x" * 70, "found x{60}…\\."),
    ],
)
def test_a_header_that_cannot_be_used_is_reported_with_the_fix(header: str, fix: str) -> None:
    with pytest.raises(InputError, match=fix):
        conform_arrow(TableReader(pa.table({header: ["a"]}), "queries"), QUERIES)


def test_a_file_without_columns_is_reported_as_not_parsed() -> None:
    with pytest.raises(InputError, match=r"found no columns\. Nothing in it could be parsed"):
        conform_arrow(TableReader(pa.table({}), "queries"), QUERIES)


@pytest.mark.parametrize(
    ("queries", "docs", "grades"),
    [
        (pa.array(["7", "8"]).cast(pa.string_view()), pa.array(["1", "2"], pa.large_string()), pa.array([1, 2])),
        (pa.array(["7", "8"]).dictionary_encode(), pa.array([1, 2], pa.uint64()), pa.array([1, 2]).dictionary_encode()),
        (pa.array([Decimal(7), Decimal(8)]), pa.array([b"1", b"2"]).cast(pa.binary_view()), pa.array([1.0, 2.0])),
        (pa.array([7, 8], pa.int8()), pa.array([b"1", b"2"], pa.large_binary()), pa.array(["1", "2.0"])),
        (pa.array([7, 8]), pa.array([1, 2]), pa.array([Decimal("1.00"), Decimal("2.00")], pa.decimal256(40, 2))),
        (pa.array([7, 8]), pa.array([1, 2]), pa.array(["1", "2"]).cast(pa.string_view())),
        (pc.run_end_encode(pa.array(["7", "8"])), pa.array([1, 2]), pa.array([1, 2], pa.float32())),
    ],
)
def test_every_type_of_arrow_that_holds_text_or_numbers_is_read(
    queries: pa.Array, docs: pa.Array, grades: pa.Array
) -> None:
    table = pa.table({"query_id": queries, "doc_id": docs, "grade": grades})
    rows = conform_arrow(TableReader(table, "judgments"), JUDGMENTS).rows
    assert rows.select(["query_id", "doc_id", "grade"]).to_pydict() == {
        "query_id": ["7", "8"],
        "doc_id": ["1", "2"],
        "grade": [1.0, 2.0],
    }


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_view(pa.int64()), pa.list_(pa.int64(), 2)],
    ids=str,
)
def test_every_kind_of_list_is_unfolded(kind: pa.DataType) -> None:
    lists = pa.array([[7, 8], None, [9, 1]], kind)
    table = pa.table({"system": ["s"] * 3, "query_id": [1, 2, 3], "ranked_items": lists})
    conformed = conform_arrow(TableReader(table, "rankings"), RANKINGS)
    assert conformed.rows["doc_id"].to_pylist() == ["7", "8", "9", "1"]
    assert conformed.rows["rank"].to_pylist() == [1, 2, 1, 2]
    assert conformed.count.rejected == {"doc_id: empty": 1}


def test_bytes_that_are_not_utf8_are_marked_and_leave_other_ids_alone() -> None:
    table = pa.table({"query_id": pa.array([b"q1", b"\xe9"]), "doc_id": ["d", "d"], "grade": [1, 1]})
    rows = conform_arrow(TableReader(table, "judgments"), JUDGMENTS).rows
    assert rows["query_id"].to_pylist() == ["q1", "\ufffd"]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "grade": [10**30]}), "grade cannot be read"),
        (pd.DataFrame([["q", "d", "e", 1]], columns=["query_id", "doc_id", "doc_id", "grade"]), "more than one column"),
    ],
)
def test_a_number_beyond_64_bits_and_two_columns_of_one_name_are_refused(table: pd.DataFrame, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        conform_arrow(TableReader(table, "judgments"), JUDGMENTS)
