"""The rows that Spark sends, of all kinds and in any order, scored as the same tables are in memory."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from udfs.conventions import Conventions
from udfs.spark import score
from udfs.spark.score import DECISION, LABEL, QUERY, ScoreRequest, score_queries
from udfs.tables import pack_bytes
from udfs.tabulate import DRAWS

STREAM = pa.schema(
    [
        ("query_id", pa.string()),
        ("source", pa.int32()),
        ("text", pa.string()),
        ("rank", pa.int32()),
        ("value", pa.float64()),
    ]
)


def query(name: str, weight: float | None, **segments: str) -> dict[str, object]:
    return {"query_id": name, "source": QUERY, "value": weight, "text": json.dumps(segments) + "\n"}


def answers(
    rows: list[dict[str, object]], systems: tuple[str, ...] = ("s", "t"), metrics: tuple[str, ...] = ()
) -> list[dict[str, object]]:
    columns = ("system", "query_id", "device", "weight", "retrieved", "tied", "ndcg_at_3")
    request = ScoreRequest(
        metrics=(*metrics, "ndcg@3"),
        conventions=Conventions(),
        systems=systems,
        segments=("device",),
        columns=(*columns, *metrics),
    )
    run = score_queries(request)
    batches = run(pa.Table.from_pylist(rows, STREAM).to_batches(max_chunksize=2))
    return [row for batch in batches for row in batch.to_pylist()]


def test_every_system_answers_for_a_query_that_only_one_of_them_ranked() -> None:
    rows: list[dict[str, object]] = [
        {"query_id": "q", "source": LABEL, "text": "a", "value": 3.0},
        {"query_id": "q", "source": 1, "text": "a", "rank": 1},
        query("q", 2.0, device="ios"),
    ]
    first, second = answers(rows)
    assert (first["system"], first["ndcg_at_3"], first["retrieved"], first["device"]) == ("s", 0.0, 0, "ios")
    assert (second["system"], second["ndcg_at_3"], second["weight"]) == ("t", 1.0, 2.0)


def test_the_rows_of_two_queries_may_come_mixed() -> None:
    rows: list[dict[str, object]] = [
        {"query_id": name, "source": 0, "text": str(doc), "rank": doc} for doc in (2, 1) for name in ("q", "r")
    ]
    rows += [{"query_id": name, "source": LABEL, "text": doc, "value": 1.0} for name, doc in (("r", "2"), ("q", "1"))]
    values = {row["query_id"]: row["ndcg_at_3"] for row in answers(rows, ("s",))}
    assert values["q"] == 1.0
    assert 0 < float(str(values["r"])) < 1.0


def test_a_query_listed_twice_counts_once_whatever_comes_first() -> None:
    listed = [query("q", 2.0, device="ios"), query("q", 2.0, device="android"), query("q", 3.0)]
    for rows in (listed, listed[::-1]):
        (row,) = answers(rows, ("s",))
        assert (row["weight"], row["device"]) == (2.0, "android")


def test_documents_at_one_place_are_told_apart_by_name_only_there() -> None:
    ranked = {"b": 1, "a": 1, "c": None}
    rows: list[dict[str, object]] = [
        {"query_id": "q", "source": 0, "text": doc, "rank": rank, "value": 0.5} for doc, rank in ranked.items()
    ]
    (row,) = answers([*rows, {"query_id": "q", "source": LABEL, "text": "a", "value": 1.0}], ("s",))
    assert row["tied"] == 1
    assert round(float(str(row["ndcg_at_3"])), 4) == 0.6309  # b stands before a: by doc_id, last first


def test_segments_may_hold_any_text_and_of_two_decisions_the_smallest_counts() -> None:
    device = 'line\nbreak, "quotes", \\ and ü🙂' + "x" * 100_000
    decisions: list[dict[str, object]] = [
        {"query_id": "q", "source": DECISION, "text": json.dumps({"expert": expert, "optimal_expert": "a"}) + "\n"}
        for expert in ("b", "a")
    ]
    for rows in (decisions, decisions[::-1]):
        (row,) = answers([*rows, query("q", 1.0, device=device)], ("s",), ("routing_accuracy",))
        assert (row["device"], row["routing_accuracy"]) == (device, 1.0)


def test_wide_draws_are_sent_in_pieces_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "_BYTES_PER_BATCH", 100)
    draws = np.arange(70, dtype="<f4").reshape(10, 7)
    batch = pa.RecordBatch.from_pydict({"query_id": pa.array(list("abcdefghij")), DRAWS: pack_bytes(draws)})
    pieces = list(score._split_rows(batch))
    assert [piece.num_rows for piece in pieces] == [3, 3, 3, 1], "28 bytes a row"
    sent = pa.Table.from_batches(pieces)
    assert sent["query_id"].to_pylist() == list("abcdefghij")
    assert b"".join(sent[DRAWS].to_pylist()) == draws.tobytes()
