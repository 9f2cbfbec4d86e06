"""UBI exports as their producers write them, with what was found in real ones."""

from __future__ import annotations

import csv
import datetime as dt
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.inputs.count import count_ignored
from pipelines.inputs.read import InputTable, read_input
from pipelines.inputs.settings import InputSource
from schemas.conform import conform
from schemas.errors import InputError
from schemas.inputs import IMPRESSIONS, INTERACTIONS, JUDGMENTS

DAY = dt.date(2026, 11, 1)
MARKS = ("\u0085", "\u2028", "\u2029")
START = 1793491200  # 2026-11-01 00:00:00 UTC


def search(page: str, text: str, second: int, hits: list[str], **more: Any) -> dict[str, Any]:
    """A document of ubi_queries as the OpenSearch plug-in writes it."""
    return {
        "timestamp": f"2026-11-01T00:00:{second:02d}.000Z",
        "query_id": page,
        "query": '{"query": {"match_all": {}}}',
        "query_response_id": f"response-{page}",
        "query_response_hit_ids": hits,
        "user_query": text,
        "query_attributes": {},
        "client_id": "client-1",
        "user_id": "",
        "application": "shop",
    } | more


def event(action: str, page: str | None, second: int, doc: str | None, ordinal: Any, **more: Any) -> dict[str, Any]:
    """A document of ubi_events as ubi.js writes it."""
    attributes = {
        "object": {"object_id": doc, "object_id_field": "ean", "description": "x"},
        "position": {"ordinal": ordinal, "x": 1, "y": 2},
        "dwell_time": 2.5,
        "browser": "Firefox 130",
        "session_id": "session-1",
    }
    return {
        "action_name": action,
        "client_id": "client-1",
        "user_id": "",
        "query_id": page,
        "message": None,
        "message_type": "INFO",
        "timestamp": (START + second) * 1000,
        "event_attributes": attributes,
        "application": "shop",
    } | more


DOCUMENTS = [
    # The response is in the query; the page has impression events from 0, of the first two results only.
    search("p1", "  Toner  CARTRIDGE", 1, ["d1", "d2", "d3", "d4"]),
    event("impression", "p1", 2, "d1", 0),
    event("impression", "p1", 2, "d2", 1, timestamp="2026-11-01T00:00:02+0000"),
    event("impression", "p1", 3, "d2", 1),  # scrolled into view again
    event("item_click", "p1", 4, "d2", 1),
    event("click", "p1", 5, "d4", 3, timestamp="2026-11-01T01:00:05+0100"),  # never logged as shown
    event("add_to_cart", "p1", 6, "d2", None),
    event("purchase", None, 7, "d2", None),  # at the checkout, without a query
    # Another application counts from 1, and logs no impressions.
    search("p2", "toner cartridge", 10, [], query_response_object_ids=["e1", "e2"], application="app"),
    event("click", "p2", 11, "e1", 1, application="app"),
    event("click", "p2", 12, "e2", 2, application="app"),
    # One query_id for a facet call with other results and for retyped text; the first is logged twice.
    search("p3", "lamp", 20, ["l1", "l2"]),
    search("p3", "lamp", 21, ["l1", "l2"]),
    search("p3", "lamp", 25, ["l2"]),
    event("click", "p3", 26, "l2", 0),
    search("p3", "lamps", 30, ["l3"]),
    # What is ignored: no text, other actions, unknown queries, ids of another field.
    search("p4", " ", 40, ["x1"]),
    event("click", "p4", 41, "x1", 0),
    event("product_hover", "p1", 42, "d1", 0),
    event("product_hover", "p1", 43, "d1", 0),
    event("logout", None, 44, None, None),
    event("click", "gone", 45, "d1", 0),
    event("click", "p1", 46, "9780", 0)
    | {"event_attributes": {"object": {"object_id": "9780", "object_id_field": "isbn"}, "position": {"ordinal": 0}}},
]


def write_bulk(path: Path, documents: list[dict[str, Any]]) -> str:
    lines = []
    for number, document in enumerate(documents):
        index = "ubi_events" if "action_name" in document else "ubi_queries"
        lines += [json.dumps({"index": {"_index": index, "_id": f"id-{number}"}}), json.dumps(document)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def write_tabs(path: Path, documents: list[dict[str, Any]]) -> str:
    lines = []
    for document in documents:
        index = "ubi_events" if "action_name" in document else "ubi_queries"
        lines.append(f"{index}\t{json.dumps(document)}")
    path.write_text("\n".join([*lines, 'ecommerce\t{"title": "a product"}', "ubi_events\t{broken"]), encoding="utf-8")
    return str(path)


def write_dump(path: Path, documents: list[dict[str, Any]]) -> str:
    hits = [
        {"_index": "ubi_events" if "action_name" in document else "ubi_queries", "_id": str(n), "_source": document}
        for n, document in enumerate(documents)
    ]
    path.write_text("\n".join(map(json.dumps, hits)), encoding="utf-8")
    return str(path)


def write_csv(path: Path, documents: list[dict[str, Any]]) -> list[str]:
    """Searches and events as two files, with JSON in the columns of objects and lists."""
    paths = []
    for name, rows in group_by_index(documents).items():
        texts = [
            {k: v if isinstance(v, str) else None if v is None else json.dumps(v) for k, v in r.items()} for r in rows
        ]
        paths.append(write_rows(path.with_name(f"{name}.csv"), texts))
    return paths


def write_flat_csv(path: Path, documents: list[dict[str, Any]]) -> list[str]:
    """Searches and events as two files, with a column for each field, as dashboards and data frames write them."""
    paths = []
    for name, rows in group_by_index(documents).items():
        flat = [{f"_source.{key}": value for key, value in flatten(row).items()} for row in rows]
        paths.append(write_rows(path.with_name(f"{name}.csv"), flat))
    return paths


def group_by_index(documents: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {
        "ubi_queries": [document for document in documents if "action_name" not in document],
        "ubi_events": [document for document in documents if "action_name" in document],
    }


def flatten(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields by their paths; a list is its values between commas."""
    fields: dict[str, Any] = {}
    for name, inner in value.items():
        key = f"{prefix}{name}"
        fields |= flatten(inner, f"{key}.") if isinstance(inner, dict) and inner else {key: inner}
    return {key: ", ".join(inner) if isinstance(inner, list) else inner for key, inner in fields.items()}


def write_rows(path: Path, rows: list[dict[str, Any]]) -> str:
    with path.open("w", encoding="utf-8", newline="") as stream:
        names = dict.fromkeys(name for row in rows for name in row)
        writer = csv.DictWriter(stream, list(names))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def read_table(spark: SparkSession, name: str, path: str | list[str], **options: str) -> InputTable:
    source = InputSource(path=path if isinstance(path, str) else tuple(path), format="ubi", options=options)
    return read_input(spark, name, source, DAY)


def list_pages(spark: SparkSession, path: str | list[str], **options: str) -> list[tuple[Any, ...]]:
    rows = conform(read_table(spark, "impressions", path, **options).raw, IMPRESSIONS).rows
    return sorted(tuple(row) for row in rows.select("serp_id", "query_id", "doc_id", "position").collect())


PAGES = [
    ("p1", "toner cartridge", "d1", 1),
    ("p1", "toner cartridge", "d2", 2),
    ("p1", "toner cartridge", "d4", 4),  # clicked, so it was shown; d3 was not
    ("p2", "toner cartridge", "e1", 1),
    ("p2", "toner cartridge", "e2", 2),
    ("p3", "lamp", "l1", 1),
    ("p3", "lamp", "l2", 2),
    ("p3/2", "lamp", "l2", 1),
    ("p3/3", "lamps", "l3", 1),
]


@pytest.mark.parametrize("write", [write_bulk, write_tabs, write_dump, write_csv, write_flat_csv])
def test_pages_come_from_events_or_else_from_the_response(spark: SparkSession, tmp_path: Path, write: Any) -> None:
    table = read_table(spark, "impressions", write(tmp_path / "export", DOCUMENTS))
    conformed = conform(table.raw, IMPRESSIONS)
    columns = ("serp_id", "query_id", "doc_id", "position")
    assert sorted(tuple(row) for row in conformed.rows.select(*columns).collect()) == PAGES
    first = conformed.rows.where("serp_id = 'p1' AND position = 1").first()
    assert first is not None
    assert (first["user_id"], first["query"], first["user_agent"]) == ("client-1", "  Toner  CARTRIDGE", "Firefox 130")
    assert first["ts"].timestamp() == START + 1
    ignored = {"result of a search without text": 1}
    if write is write_tabs:
        ignored["document that is neither a search nor an event"] = 1
        assert [row["reason"] for row in conformed.rejected_rows.collect()] == ["line cannot be parsed"]
    assert count_ignored(table.ignored) == ignored


@pytest.mark.parametrize("write", [write_bulk, write_csv, write_flat_csv])
def test_events_are_mapped_and_the_others_counted(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, write: Any
) -> None:
    with caplog.at_level(logging.WARNING):
        table = read_table(spark, "interactions", write(tmp_path / "export", DOCUMENTS))
    rows = conform(table.raw, INTERACTIONS).rows
    chosen = rows.selectExpr("kind", "serp_id", "doc_id", f"unix_seconds(ts) - {START}", "dwell_seconds", "user_id")
    assert sorted(map(tuple, chosen.collect()), key=lambda row: row[3]) == [
        ("click", "p1", "d2", 4, 2.5, "client-1"),
        ("click", "p1", "d4", 5, 2.5, "client-1"),
        ("cart", "p1", "d2", 6, 2.5, "client-1"),
        ("purchase", None, "d2", 7, 2.5, "client-1"),
        ("click", "p2", "e1", 11, 2.5, "client-1"),
        ("click", "p2", "e2", 12, 2.5, "client-1"),
        ("click", "p3/2", "l2", 26, 2.5, "client-1"),
    ]
    assert rows.select("event_id").distinct().count() == 7
    assert count_ignored(table.ignored) == {
        "action product_hover": 2,
        "action logout": 1,
        "event of a search that is not in the export": 1,
        "event of a search without text": 1,
        "object_id_field isbn": 1,
    }
    (warning,) = [record.getMessage() for record in caplog.records if "several fields" in record.getMessage()]
    assert "application 'shop' have ids of several fields (ean 10, isbn 1); only those of ean are read" in warning


def test_lists_of_csv_are_json_or_written_as_python_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    for number, hits in enumerate(('["d1", "d2"]', "['d1', 'd2']", "d1,d2")):
        row = {"query_id": "p", "user_query": "lamp", "timestamp": "2026-11-01", "query_response_hit_ids": hits}
        path = write_rows(tmp_path / f"{number}.csv", [row])
        assert list_pages(spark, path) == [("p", "lamp", "d1", 1), ("p", "lamp", "d2", 2)]


def test_a_dump_that_is_named_as_csv_is_a_dump(spark: SparkSession, tmp_path: Path) -> None:
    path = write_tabs(tmp_path / "dump.tsv", [search("p1", "Lamp", 1, ["d1", "d2"]), event("click", "p1", 2, "d1", 1)])
    assert list_pages(spark, path) == [("p1", "lamp", "d1", 1), ("p1", "lamp", "d2", 2)]


def test_files_that_are_not_of_ubi_are_refused_when_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("query_id,user_query\n" + "p1,red shoes\n" * 3)
    with pytest.raises(InputError, match=r"no line is a search or an event of UBI; the first is 'query_id,user_query'"):
        read_table(spark, "impressions", str(tmp_path / "log.txt"))
    (tmp_path / "log.csv").write_text("serp,product\np1,d1\n")
    with pytest.raises(InputError, match=r"\(inputs.interactions.format\): UBI is read from JSON lines, or from CSV"):
        read_table(spark, "interactions", str(tmp_path / "log.csv"))


def test_events_without_any_search_are_warned_about(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_bulk(tmp_path / "events", [event("click", "p1", 5, "d4", 3)])
    with caplog.at_level(logging.WARNING):
        assert list_pages(spark, path) == []
    assert "read both, as in path: [ubi_queries.ndjson, ubi_events.ndjson]" in caplog.text


def test_the_separators_of_lines_of_unicode_are_text(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        f"ubi_queries\t{json.dumps(search('p', f'red{mark}lamp', 1, ['d1']), ensure_ascii=False)}" for mark in MARKS
    ]
    (tmp_path / "dump.txt").write_text("\n".join(lines), encoding="utf-8", newline="\n")
    assert {doc for _, _, doc, _ in list_pages(spark, str(tmp_path / "dump.txt"))} == {"d1"}


def test_options_say_what_the_export_does_not(spark: SparkSession, tmp_path: Path) -> None:
    path = write_bulk(tmp_path / "export", DOCUMENTS)
    unshifted = [
        (page, query, doc, position) for page, query, doc, position in list_pages(spark, path, first_ordinal="1")
    ]
    assert ("p1", "toner cartridge", "d2", 1) in unshifted  # and d1, at 0, is in quarantine
    assert ("p1", "toner cartridge", "d1", 1) not in unshifted
    raw = read_table(spark, "interactions", path, kinds="product_hover=click", object_id_field="any").raw
    assert raw.where("doc_id = '9780'").count() == 1
    assert raw.where("doc_id = 'd1' AND kind = 'click'").count() == 2


def test_ratings_that_are_gains_become_grades(spark: SparkSession, tmp_path: Path) -> None:
    body = {
        "name": "Imported Judgments",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [
            {
                "query": "Red Dress",
                "ratings": [{"docId": "B1", "rating": "100.000"}, {"docId": "B2", "rating": "0.000"}],
            },
            {"query": "lamp", "ratings": [{"docId": "B1", "rating": 10}, {"docId": "B3", "rating": 1}]},
        ],
    }
    (tmp_path / "whole.json").write_text(json.dumps(body, indent=2))
    raw = read_table(spark, "judgments", str(tmp_path / "whole.json")).raw
    rows = conform(raw, JUDGMENTS).rows.select("query_id", "doc_id", "grade").collect()
    grades = [("lamp", "B1", 2.0), ("lamp", "B3", 1.0), ("red dress", "B1", 3.0), ("red dress", "B2", 0.0)]
    assert sorted(tuple(row) for row in rows) == grades
    body["judgmentRatings"] = [
        {"query": "lamp", "ratings": [{"docId": "B1", "rating": 3}, {"docId": "B2", "rating": 1}]}
    ]
    (tmp_path / "lines.json").write_text(json.dumps({"_index": "judgment", "_source": body}) + "\nbroken\n")
    conformed = conform(read_table(spark, "judgments", str(tmp_path / "lines.json")).raw, JUDGMENTS)
    rows = conformed.rows.select("query_id", "doc_id", "grade").collect()
    assert sorted(tuple(row) for row in rows) == [("lamp", "B1", 3.0), ("lamp", "B2", 1.0)]
    assert [row["reason"] for row in conformed.rejected_rows.collect()] == ["line cannot be parsed"]
