"""Presets on files as their producers write them: pages with arrays, tables with a clicked flag, and GA4."""

from __future__ import annotations

import datetime as dt
import json
import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession

from pipelines.inputs.count import count_ignored
from pipelines.inputs.read import InputTable, read_input
from pipelines.inputs.settings import InputSource
from schemas.conform import conform
from schemas.errors import InputError
from schemas.inputs import INPUTS

DAY = dt.date(2026, 11, 1)
START = 1793491200  # 2026-11-01 00:00:00 UTC


def write_lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return str(path)


def read_table(spark: SparkSession, name: str, path: str, preset: str, **options: str) -> InputTable:
    return read_input(spark, name, InputSource(path=path, format=preset, options=options), DAY)


def list_rows(table: InputTable, name: str, *columns: str) -> list[tuple[Any, ...]]:
    rows: DataFrame = conform(table.raw, INPUTS[name]).rows
    return sorted(tuple(row) for row in rows.selectExpr(*columns).collect())


def test_pages_with_parallel_arrays(spark: SparkSession, tmp_path: Path) -> None:
    pages = [
        {
            "search_id": "s1",
            "q": "Lamp",
            "time": START,
            "doc_ids": ["a", "b", "c"],
            "clicks": [0, 1, 0],
            "random_bool": 1,
        },
        {
            "search_id": "s2",
            "q": "lamp ",
            "time": START * 1000,
            "doc_ids": ["b", "a"],
            "clicks": ["a"],
            "random_bool": 0,
        },
        {"search_id": "s3", "q": "sofa", "time": START, "doc_ids": ["a"], "clicks": [], "random_bool": 0},
    ]
    path = write_lines(tmp_path / "pages.json", pages)
    shown = read_table(spark, "impressions", path, "serp_arrays")
    columns = ("serp_id", "query_id", "doc_id", "position", "unix_seconds(ts)", "system")
    assert list_rows(shown, "impressions", *columns) == [
        ("s1", "lamp", "a", 1, START, "1"),
        ("s1", "lamp", "b", 2, START, "1"),
        ("s1", "lamp", "c", 3, START, "1"),
        ("s2", "lamp", "a", 2, START, "0"),
        ("s2", "lamp", "b", 1, START, "0"),
        ("s3", "sofa", "a", 1, START, "0"),
    ]
    clicks = read_table(spark, "interactions", path, "serp_arrays")
    assert list_rows(clicks, "interactions", "serp_id", "doc_id", "kind") == [
        ("s1", "b", "click"),
        ("s2", "a", "click"),
    ]


def test_results_with_fields_and_ids_that_start_again_in_every_file(spark: SparkSession, tmp_path: Path) -> None:
    page = {"page_id": 1, "query": "lamp", "ts": "2026-11-01T00:00:00Z", "user": "u"}
    results = [{"id": "a", "clicked": False, "rank": 0.0}, {"id": "b", "clicked": True, "rank": 1.0}]
    write_lines(tmp_path / "log" / "1.json", [page | {"results": results}])
    write_lines(tmp_path / "log" / "2.json", [page | {"query": "sofa", "results": results[:1]}])
    shown = read_table(spark, "impressions", str(tmp_path / "log"), "serp_arrays", pages="file")
    rows = list_rows(shown, "impressions", "query_id", "doc_id", "position", "serp_id")
    assert [row[:3] for row in rows] == [("lamp", "a", 1), ("lamp", "b", 2), ("sofa", "a", 1)]
    assert len({row[3] for row in rows}) == 2
    clicks = read_table(spark, "interactions", str(tmp_path / "log"), "serp_arrays", pages="file")
    assert list_rows(clicks, "interactions", "doc_id", "serp_id") == [("b", rows[1][3])]


def test_page_ids_that_start_again_are_refused_until_it_is_said_what_they_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Pages of two queries became one page, and labels were built from it."""
    page = {"page_id": 1, "ts": "2026-11-01T00:00:00Z", "user": "u", "results": ["a"]}
    for number, query in enumerate(("lamp", "sofa")):
        write_lines(tmp_path / "log" / f"{number}.json", [page | {"query": query}])
    folder = str(tmp_path / "log")
    problem = r"1 of 1 ids of page_id are in several files with different queries.*inputs.impressions.options.pages"
    with pytest.raises(InputError, match=problem):
        read_table(spark, "impressions", folder, "serp_arrays")
    for pages, number in (("file", 2), ("id", 1)):
        shown = read_table(spark, "impressions", folder, "serp_arrays", pages=pages)
        assert len({row[0] for row in list_rows(shown, "impressions", "serp_id")}) == number


def test_the_rows_of_a_page_may_be_in_several_files(spark: SparkSession, tmp_path: Path) -> None:
    page = {"page_id": 1, "query": "lamp", "ts": "2026-11-01T00:00:00Z", "user": "u", "clicked": 0}
    for number in range(2):
        write_lines(tmp_path / "log" / f"{number}.json", [page | {"doc_id": f"d{number}", "rank": number + 1}])
    shown = read_table(spark, "impressions", str(tmp_path / "log"), "serp_arrays")
    assert list_rows(shown, "impressions", "serp_id", "doc_id") == [("1", "d0"), ("1", "d1")]


def test_one_table_with_a_clicked_flag_and_ranks_from_zero(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Ranks are floats from 0, and there is neither a time nor a user: derived, and reported."""
    table = pd.DataFrame(
        {"session": ["x", "x", "y"], "query": ["a b", "a b", "c"], "doc_id": ["d1", "d2", "d1"],
         "rank": [0.0, 1.0, 0.0], "is_clicked": [0, 1, 0]}
    )  # fmt: skip
    table.to_parquet(tmp_path / "flat.parquet")
    path = str(tmp_path / "flat.parquet")
    with caplog.at_level(logging.WARNING):
        shown = read_table(spark, "impressions", path, "serp_arrays", files="parquet", page="session")
    messages = " ".join(record.getMessage() for record in caplog.records)
    assert "pages have no time; the time at which the file was written is used: set options.time" in messages
    assert "pages have no user; none is used" in messages
    rows = list_rows(shown, "impressions", "serp_id", "query_id", "doc_id", "position")
    assert rows == [("x", "a b", "d1", 1), ("x", "a b", "d2", 2), ("y", "c", "d1", 1)]
    clicks = read_table(spark, "interactions", path, "serp_arrays", files="parquet", page="session")
    assert list_rows(clicks, "interactions", "serp_id", "doc_id") == [("x", "d2")]
    with pytest.raises(InputError, match="no column serp for page") as caught:
        read_table(spark, "impressions", path, "serp_arrays", files="parquet", page="serp")
    assert caught.value.where == "inputs.impressions.options.page"
    assert "set it to one of session, query" in caught.value.hint


def test_a_clicked_table_keeps_its_other_columns_for_segments(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "flat.tsv"
    path.write_text(
        "search_id\tquery\tproduct_id\tposition\tclicked\ttimestamp\tdevice\n"
        "s1\tred shoes\ta\t1\t1\t2026-11-01\tphone\n",
        encoding="utf-8",
    )
    shown = read_table(spark, "impressions", str(path), "serp_arrays")
    assert [tuple(row) for row in shown.raw.select("doc_id", "position", "device").collect()] == [("a", 1, "phone")]
    used = read_table(spark, "interactions", str(path), "serp_arrays")
    assert list_rows(used, "interactions", "serp_id", "doc_id") == [("s1", "a")]


def test_a_clicked_table_without_positions_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "flat.csv"
    path.write_text("search_id,query,product_id,clicked\ns1,red,a,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="no column position or rank or pos, and product_id is not an array") as caught:
        read_table(spark, "impressions", str(path), "serp_arrays")
    assert caught.value.where == "inputs.impressions.options.position"
    assert caught.value.hint == "set it to one of search_id, query, product_id, clicked"


def test_a_clicked_table_with_another_separator_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "flat.csv"
    path.write_text("search_id;query;product_id;position\ns1;red;a;1\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_table(spark, "impressions", str(path), "serp_arrays")
    assert caught.value.hint == 'Say what separates the fields with options: {sep: ";"}'


@pytest.mark.parametrize("preset", ["serp_arrays", "ga4"])
def test_lines_that_are_no_json_are_quarantined(spark: SparkSession, tmp_path: Path, preset: str) -> None:
    page: dict[str, Any] = {"search_id": "s", "query": "x", "ts": START, "doc_ids": ["a"], "clicks": [1]}
    if preset == "ga4":
        page = make_event("view_item_list", 1, [make_item("a", "0")], search_term="x")
    path = tmp_path / "log.json"
    path.write_text(json.dumps(page) + '\n{"cut off\n', encoding="utf-8")
    for name in ("impressions", "interactions"):
        rejected = conform(read_table(spark, name, str(path), preset).raw, INPUTS[name]).rejected_rows
        assert [row["reason"] for row in rejected.collect()] == ["line cannot be parsed"], name


def make_event(name: str, second: int, items: list[dict[str, Any]], **parameters: Any) -> dict[str, Any]:
    """An event as BigQuery extracts it to JSON: integers are text, and a parameter has one of four types."""
    kinds = {str: "string_value", int: "int_value", float: "double_value"}
    values = {"ga_session_id": 77, **parameters}
    return {
        "event_date": "20261101",
        "event_timestamp": str((START + second) * 1_000_000),
        "event_name": name,
        "event_params": [
            {"key": key, "value": {kinds[type(value)]: str(value) if isinstance(value, int) else value}}
            for key, value in values.items()
        ],
        "user_pseudo_id": "1234.5678",
        "device": {"category": "mobile"},
        "items": items,
    }


def make_item(name: str, index: str | None, **more: Any) -> dict[str, Any]:
    listed = {"item_list_id": "(not set)", "item_list_name": "Search Results", "item_list_index": index}
    return {"item_id": name, "item_name": name.upper(), **listed, **more}


def test_an_export_of_ga4(spark: SparkSession, tmp_path: Path) -> None:
    address = "https://shop.example/search?page=1&q=Red%20Shoes#top"
    events = [
        make_event("view_item_list", 1, [make_item("a", "0"), make_item("b", "1")], search_term="red  shoes"),
        make_event("view_item_list", 9, [make_item("c", "(not set)"), make_item("d", None)], page_location=address),
        make_event("view_item_list", 20, [make_item("a", "0", item_list_name="Shoes for Women")]),
        make_event("select_item", 5, [make_item("b", "1")]),
        make_event("select_item", 21, [make_item("z", "1")]),  # of a list that was not logged
        make_event("add_to_cart", 30, [make_item("b", None)]),
        make_event("purchase", 40, [make_item("b", None, price=2.5, quantity="2"), make_item("e", None, price=1.0)]),
        make_event("page_view", 41, []),
        make_event("scroll", 42, []),
        make_event("scroll", 43, []),
    ]
    path = write_lines(tmp_path / "events_20261101.json", events)
    shown = read_table(spark, "impressions", path, "ga4")
    columns = ("query_id", "doc_id", "position", f"unix_seconds(ts) - {START}", "user_id", "session_id", "serp_id")
    rows = list_rows(shown, "impressions", *columns)
    assert [row[:4] for row in rows] == [
        ("list: shoes for women", "a", 1, 20),
        ("red shoes", "a", 1, 1),
        ("red shoes", "b", 2, 1),
        ("red shoes", "c", 1, 9),
        ("red shoes", "d", 2, 9),
    ]
    assert {row[4:6] for row in rows} == {("1234.5678", "77")}
    used = read_table(spark, "interactions", path, "ga4")
    assert list_rows(used, "interactions", "kind", "doc_id", "serp_id", "value") == [
        ("cart", "b", None, None),
        ("click", "b", rows[2][6], None),
        ("purchase", "b", None, 5.0),
        ("purchase", "e", None, 1.0),
    ]
    assert count_ignored(used.ignored) == {
        "event scroll": 2,
        "event page_view": 1,
        "select_item without a view_item_list of the item in its session": 1,
    }


def test_an_export_of_ga4_as_parquet_needs_no_option(spark: SparkSession, tmp_path: Path) -> None:
    """BigQuery writes integers as numbers there; the columns of a page are kept for segments and systems."""
    value = {"string_value": None, "int_value": None, "float_value": None, "double_value": None}
    parameters = [
        {"key": "ga_session_id", "value": value | {"int_value": 77}},
        {"key": "search_term", "value": value | {"string_value": "Red"}},
        {"key": "exp_variant", "value": value | {"string_value": "neural"}},
    ]
    event = make_event("view_item_list", 1, [make_item("a", "0"), make_item("b", "1")])
    event |= {"event_timestamp": (START + 1) * 1_000_000, "event_params": parameters}
    click = event | {
        "event_name": "select_item",
        "event_timestamp": (START + 5) * 1_000_000,
        "items": event["items"][1:],
    }
    (tmp_path / "export").mkdir()
    pa.parquet.write_table(pa.Table.from_pylist([event, click]), tmp_path / "export" / "000000000000.parquet")
    path = str(tmp_path / "export")
    shown = read_table(spark, "impressions", path, "ga4")
    assert list_rows(shown, "impressions", "query_id", "doc_id", "position") == [("red", "a", 1), ("red", "b", 2)]
    assert {row[0] for row in shown.raw.select("device.category").collect()} == {"mobile"}
    arms = read_table(spark, "impressions", path, "ga4", system="exp_variant")
    assert {row[0] for row in list_rows(arms, "impressions", "system")} == {"neural"}
    used = read_table(spark, "interactions", path, "ga4")
    assert list_rows(used, "interactions", "kind", "doc_id") == [("click", "b")]


def test_files_that_are_not_of_ga4_are_refused_in_one_line(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "log.json", [{"event": "click", "user": "u"}])
    with pytest.raises(InputError, match=r"no column event_name, event_timestamp, .*every file of GA4 has") as caught:
        read_table(spark, "impressions", path, "ga4")
    assert caught.value.where == "inputs.impressions.format"
    assert "it has event, user; `assay inspect` drafts how to read it" in caught.value.hint
    assert "QueryContextLogger" not in capfd.readouterr().err


def test_data_sets_of_the_hugging_face_hub(spark: SparkSession, tmp_path: Path) -> None:
    def write_table(name: str, rows: list[dict[str, Any]]) -> str:
        pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / name)
        return str(tmp_path / name)

    qrels = write_table("qrels-00000-of-00001.parquet", [{"query-id": 7, "corpus-id": "MED-1", "score": 2}])
    judged = read_table(spark, "judgments", qrels, "huggingface")
    assert list_rows(judged, "judgments", "query_id", "doc_id", "grade") == [("7", "MED-1", 2.0)]
    labels = [{"query": "Red Shoes", "product_id": f"B{n}", "esci_label": label} for n, label in enumerate("ESCI")]
    judged = read_table(spark, "judgments", write_table("esci.parquet", labels), "huggingface")
    grades = [("red shoes", f"B{n}", grade) for n, grade in enumerate((3.0, 2.0, 1.0, 0.0))]
    assert list_rows(judged, "judgments", "query_id", "doc_id", "grade") == grades
    passages = {"is_selected": [0, 1], "passage_text": ["one", "two"], "url": ["u", "v"]}
    marco = write_table("train-00000-of-00007.parquet", [{"query_id": 1, "query": "x", "passages": passages}])
    judged = read_table(spark, "judgments", marco, "huggingface")
    assert sorted(row[1] for row in list_rows(judged, "judgments", "query_id", "grade")) == [0.0, 1.0]
    texts = read_table(spark, "queries", write_table("q.parquet", [{"_id": "7", "text": "red"}]), "huggingface")
    assert [tuple(row) for row in texts.raw.collect()] == [("7", "red")]
    with pytest.raises(InputError, match=r"judgments has none of .* for grade") as caught:
        read_table(spark, "judgments", write_table("x.parquet", [{"query_id": 7, "doc_id": 1}]), "huggingface")
    assert "format: parquet and inputs.judgments.columns" in caught.value.hint
