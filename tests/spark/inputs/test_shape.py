"""Shaping in configuration: expressions, exploded arrays, value maps, units of time and views."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.inputs.listing import list_locally
from pipelines.inputs.read import read_input
from pipelines.inputs.settings import InputSource
from schemas.conform import ConformedTable, conform
from schemas.errors import ConfigurationError, InputError
from schemas.inputs import IMPRESSIONS, INTERACTIONS
from schemas.table import Table

DAY = dt.date(2026, 11, 1)
PAGES: list[dict[str, Any]] = [
    {"req": {"id": "s1"}, "q": " Red Shoes ", "t": 1793520000123, "hits": [{"id": "d1"}, {"id": "d2"}]},
    {"req": {"id": "s2"}, "q": "lamp", "t": "late", "hits": [{"id": "d3"}]},
    {"req": {"id": "s3"}, "q": "lamp", "t": 1793520000123, "hits": []},
]
EVENTS: list[dict[str, Any]] = [
    {"action": "item_click", "page": "s1", "doc": "d2", "when": "2026-11-01T00:00:10Z", "n": 1},
    {"action": "add_to_cart", "page": "s1", "doc": "d2", "when": "2026-11-01T01:00:20+01:00", "n": 2},
    {"action": "purchase", "page": "s1", "doc": "d2", "when": "2026-11-01 00:00:30", "n": 3},
    {"action": "hover", "page": "s1", "doc": "d2", "when": "2026-11-01T00:00:40", "n": 4},
]
PAGE_COLUMNS = {
    "serp_id": "req.id",
    "query_id": "lower(trim(q))",
    "doc_id": "item.id",
    "position": "pos + 1",
    "ts": "timestamp_millis(bigint(t))",
    "system": "'bm25'",
}


def write_lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return str(path)


def read_conformed(spark: SparkSession, table: Table, source: dict[str, Any]) -> ConformedTable:
    settings = InputSource.model_validate(source)
    raw = read_input(spark, table.name, settings, DAY).raw
    return conform(raw, table, columns=settings.columns)


def test_pages_with_arrays_and_milliseconds_become_impressions(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "pages.json", PAGES)
    source = {"path": path, "format": "json", "explode": "hits", "columns": PAGE_COLUMNS}
    table = read_conformed(spark, IMPRESSIONS, source)
    rows = table.rows.selectExpr("serp_id", "query_id", "doc_id", "position", "unix_millis(ts) as ts", "system")
    assert sorted(tuple(row) for row in rows.collect()) == [
        ("s1", "red shoes", "d1", 1, 1793520000123, "bm25"),
        ("s1", "red shoes", "d2", 2, 1793520000123, "bm25"),
    ]
    (rejected,) = table.rejected_rows.collect()  # one bad value rejects its row, and does not end the run
    assert rejected["reason"] == "ts: empty"
    assert json.loads(rejected["row"])["t"] == "late"


def test_foreign_names_values_and_zones_become_interactions(spark: SparkSession, tmp_path: Path) -> None:
    columns = {
        "event_id": "concat(page, '-', n)",
        "kind": {"from": "action", "values": {"item_click": "click", "add_to_cart": "cart"}},
        "doc_id": "doc",
        "serp_id": "page",
        "ts": "when",
    }
    path = write_lines(tmp_path / "events.json", EVENTS)
    source = {"path": path, "format": "json", "columns": columns, "where": "action <> 'hover'"}
    rows = read_conformed(spark, INTERACTIONS, source).rows.selectExpr("event_id", "kind", "unix_seconds(ts) as ts")
    start = 1793491200
    assert sorted(tuple(row) for row in rows.collect()) == [
        ("s1-1", "click", start + 10),
        ("s1-2", "cart", start + 20),
        ("s1-3", "purchase", start + 30),
    ]


def test_parallel_arrays_and_a_clicked_flag(spark: SparkSession, tmp_path: Path) -> None:
    page = {"id": "s1", "docs": ["d1", "d2", "d3"], "clicked": [0, 1, 1], "t": 1793520000}
    columns = {
        "event_id": "concat(id, '/', pos)",
        "kind": "'click'",
        "doc_id": "item.docs",
        "serp_id": "id",
        "ts": "timestamp_seconds(bigint(t))",
    }
    source = {
        "path": write_lines(tmp_path / "pages.json", [page]),
        "format": "json",
        "explode": "arrays_zip(docs, clicked)",
        "where": "item.clicked = 1",
        "columns": columns,
    }
    rows = read_conformed(spark, INTERACTIONS, source).rows.select("event_id", "doc_id").collect()
    assert sorted(tuple(row) for row in rows) == [("s1/1", "d2"), ("s1/2", "d3")]


def test_a_view_joins_named_sources_and_keeps_the_digest_of_a_local_listing(
    spark: SparkSession, tmp_path: Path
) -> None:
    pages = write_lines(tmp_path / "pages.json", PAGES[:1])
    texts = tmp_path / "texts.csv"
    texts.write_text("id,text\nd1,one\nd2,two\n")
    settings = {
        "view": """
            SELECT p.req.id AS serp_id, lower(trim(p.q)) AS query_id, hit.id AS doc_id, i + 1 AS position,
                   timestamp_millis(bigint(p.t)) AS ts, t.text AS query, '{date}' AS system
            FROM (SELECT *, posexplode(hits) AS (i, hit) FROM {pages}) p JOIN {texts} t ON hit.id = t.id
            WHERE hit.id RLIKE 'd[0-9]{1}' -- braces of a pattern are no names
        """,
        "sources": {"pages": {"path": pages, "format": "json"}, "texts": {"path": str(texts), "format": "csv"}},
    }
    views = spark.catalog.listTables()
    table = read_conformed(spark, IMPRESSIONS, settings)
    rows = table.rows.select("doc_id", "position", "query", "system").collect()
    assert sorted(tuple(row) for row in rows) == [("d1", 1, "one", "2026-11-01"), ("d2", 2, "two", "2026-11-01")]
    source = InputSource.model_validate(settings)
    listing = list_locally("impressions", source, DAY)
    assert listing is not None
    assert read_input(spark, "impressions", source, DAY).digest == listing.digest
    assert read_input(spark, "impressions", source, DAY, listing).digest == listing.digest
    assert spark.catalog.listTables() == views


@pytest.mark.parametrize(
    ("changed", "key", "message"),
    [
        (
            {"doc_id": "item.uid"},
            "columns.doc_id",
            r"No such struct field `uid` in `id`.*: write a field that the data has",
        ),
        ({"serp_id": "request.id"}, "columns.serp_id", r"`request`.*write a column of the data there"),
        ({"ts": "timestamp_millis(hits)"}, "columns.ts", r"convert it there, as in bigint"),
        ({"ts": "from_millis(t)"}, "columns.ts", r"from_millis.*look up the functions"),
    ],
)
def test_an_expression_that_does_not_fit_the_data_names_its_key_and_the_fix(
    spark: SparkSession,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    changed: dict[str, str],
    key: str,
    message: str,
) -> None:
    path = write_lines(tmp_path / "pages.json", PAGES)
    source = {"path": path, "format": "json", "explode": "hits", "columns": PAGE_COLUMNS | changed}
    with pytest.raises(InputError, match=message) as caught:
        read_conformed(spark, IMPRESSIONS, source)
    assert caught.value.where == f"inputs.impressions.{key}"
    assert "QueryContextLogger" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ({"columns": {"ts": "t +"}}, "inputs.impressions.columns.ts"),
        ({"explode": "hits +"}, "inputs.impressions.explode"),
        ({"where": "t ="}, "inputs.impressions.where"),
    ],
)
def test_sql_that_cannot_be_parsed_is_a_configuration_error(
    spark: SparkSession, tmp_path: Path, source: dict[str, Any], where: str
) -> None:
    path = write_lines(tmp_path / "pages.json", PAGES)
    with pytest.raises(ConfigurationError, match="cannot be parsed") as caught:
        read_conformed(spark, IMPRESSIONS, {"path": path, "format": "json"} | source)
    assert caught.value.where == where


def test_a_view_cannot_be_a_command(spark: SparkSession, tmp_path: Path) -> None:
    pages = {"path": write_lines(tmp_path / "pages.json", PAGES), "format": "json"}
    for command in ("create table t as select * from {a}", "with x as (select 1) insert into t select * from {a}"):
        source = InputSource.model_validate({"view": command, "sources": {"a": pages}})
        with pytest.raises(ConfigurationError, match="cannot be parsed") as caught:
            read_input(spark, "impressions", source, DAY)
        assert caught.value.where == "inputs.impressions.view"
