"""BEIR and MS MARCO files, in the shapes their publishers write."""

import datetime as dt
from pathlib import Path

from pyspark.sql import SparkSession

from pipelines.inputs.read import read_input
from pipelines.inputs.settings import InputSource
from schemas.conform import ConformedTable, conform
from schemas.inputs import INPUTS

DAY = dt.date(2026, 11, 1)


def read(spark: SparkSession, table: str, kind: str, path: Path, text: str) -> ConformedTable:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    raw = read_input(spark, table, InputSource(path=str(path), format=kind), DAY).raw
    return conform(raw, INPUTS[table])


def test_the_files_of_beir(spark: SparkSession, tmp_path: Path) -> None:
    qrels = read(
        spark,
        "judgments",
        "beir",
        tmp_path / "qrels" / "test.tsv",
        'query-id\tcorpus-id\tscore\n1\t"31715818\t2\n1\t14717500\t0\n',
    )
    grades = qrels.rows.select("query_id", "doc_id", "grade").collect()
    assert sorted(map(tuple, grades)) == [("1", '"31715818', 2.0), ("1", "14717500", 0.0)]
    queries = read(
        spark,
        "queries",
        "beir",
        tmp_path / "queries.jsonl",
        '{"_id": "0", "text": "0-dimensional biomaterials", "metadata": {"a": [1]}}\n{"_id": 7, "text": "b"}\nnone\n',
    )
    assert sorted(map(tuple, queries.rows.select("query_id", "query").collect())) == [
        ("0", "0-dimensional biomaterials"),
        ("7", "b"),
    ]
    assert queries.rejected_rows.count() == 1
    corpus = read(
        spark,
        "documents",
        "beir",
        tmp_path / "corpus.jsonl",
        '{"_id": "4983", "title": "White matter", "text": "Alterations"}\n{"_id": "5", "title": "", "text": "Long."}\n',
    )
    assert sorted(map(tuple, corpus.rows.select("doc_id", "title").collect())) == [
        ("4983", "White matter"),
        ("5", "Long."),
    ]
    for table, rows in (("judgments", 2), ("queries", 3), ("documents", 2)):  # the folder has all three
        source = InputSource(path=str(tmp_path), format="beir")
        assert read_input(spark, table, source, DAY).raw.count() == rows


def test_the_files_of_ms_marco(spark: SparkSession, tmp_path: Path) -> None:
    run = read(
        spark, "rankings", "msmarco", tmp_path / "dev.tsv", "188714\t1000052\t1\n188714\t1082792\t2\n188714\t9\n"
    )
    assert sorted(map(tuple, run.rows.select("system", "query_id", "doc_id", "rank").collect())) == [
        ("dev", "188714", "1000052", 1),
        ("dev", "188714", "1082792", 2),
    ]
    assert run.rejected_rows.count() == 1
    qrels = read(spark, "judgments", "msmarco", tmp_path / "qrels.tsv", "1102432\t0\t2026790\t1\n")
    assert [tuple(row) for row in qrels.rows.select("query_id", "doc_id", "grade").collect()] == [
        ("1102432", "2026790", 1.0)
    ]
    queries = read(spark, "queries", "msmarco", tmp_path / "q.tsv", "1048585\twhat is paula deen's brother\n")
    assert [tuple(row) for row in queries.rows.select("query_id", "query").collect()] == [
        ("1048585", "what is paula deen's brother")
    ]
    corpus = read(
        spark,
        "documents",
        "msmarco",
        tmp_path / "c.tsv",
        "0\tThe presence of communication\nD1\thttps://a.example/b\tA title\tA body\n",
    )
    assert sorted(map(tuple, corpus.rows.select("doc_id", "title").collect())) == [
        ("0", "The presence of communication"),
        ("D1", "A title"),
    ]
