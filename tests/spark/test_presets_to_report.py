"""Each preset from the file of its producer to a report, with at most ten lines of configuration."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipelines.config.load import load_config
from pipelines.evaluate import evaluate
from pipelines.report.render import render_report
from pipelines.warehouse.storage import Storage
from tests.helpers.foreign_logs import PAGES, QUERIES, RESULTS, count_clicks, list_pages, write_ubi
from tests.spark.inputs.test_presets import make_event, make_item

DAY = dt.date(2026, 11, 1)
MAX_LINES = 10


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")


def write_rankings(folder: Path, *, queries: list[str], documents: Callable[[str], list[str]]) -> None:
    """Two systems: one lists the documents of a query in order, the other in reverse."""
    rows = [
        {"system": system, "query_id": query, "doc_id": document, "rank": rank}
        for query in queries
        for system, order in (("old", 1), ("new", -1))
        for rank, document in enumerate(documents(query)[::order], start=1)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rankings.parquet")


def write_log_rankings(folder: Path) -> None:
    names = [f"query {number}" for number in range(QUERIES)]
    write_rankings(folder, queries=names, documents=lambda q: [f"d{q.split()[1]}-{n}" for n in range(RESULTS)])


def prepare_ubi(folder: Path) -> None:
    write_ubi(folder / "log.ndjson")
    write_log_rankings(folder)


def prepare_arrays(folder: Path) -> None:
    pages = [
        {
            "search_id": page["id"],
            "query": page["text"],
            "timestamp": page["millis"],
            "user_id": page["user"],
            "doc_ids": page["documents"],
            "clicks": [int(place in page["clicked"]) for place in range(RESULTS)],
        }
        for page in list_pages()
    ]
    write_lines(folder / "serps.json", pages)
    write_log_rankings(folder)


def prepare_ga4(folder: Path) -> None:
    start = next(list_pages())["millis"] // 1000
    events = []
    for number, page in enumerate(list_pages()):
        second = page["millis"] // 1000 - start
        items = [make_item(document, str(place)) for place, document in enumerate(page["documents"])]
        about = {"user_pseudo_id": page["user"]}
        events.append(
            make_event("view_item_list", second, items, search_term=page["text"], ga_session_id=number) | about
        )
        events += [
            make_event("select_item", second + 5 + place, [items[place]], ga_session_id=number) | about
            for place in page["clicked"]
        ]
    write_lines(folder / "events_20261101.json", events)
    write_log_rankings(folder)


def prepare_hugging_face(folder: Path) -> None:
    queries = [str(number) for number in range(40)]
    qrels = [
        {"query-id": int(query), "corpus-id": f"MED-{query}-{place}", "score": (place + int(query)) % 3}
        for query in queries
        for place in range(4)
    ]
    pq.write_table(pa.Table.from_pylist(qrels), folder / "test-00000-of-00001.parquet")
    texts = [{"_id": query, "text": f"claim {query}"} for query in queries]
    pq.write_table(pa.Table.from_pylist(texts), folder / "queries-00000-of-00001.parquet")
    write_rankings(folder, queries=queries, documents=lambda q: [f"MED-{q}-{n}" for n in range(4)])


def write_runs(folder: Path, line: str) -> None:
    """Two runs of 40 queries with 4 documents each, in opposite orders, with the lines of a format."""
    (folder / "runs").mkdir()
    for tag, order in (("old", 1), ("new", -1)):
        lines = [
            line.format(query=query, doc=f"MED-{query}-{place}", rank=rank, score=9 - rank, tag=tag)
            for query in range(40)
            for rank, place in enumerate(range(4)[::order], start=1)
        ]
        (folder / "runs" / f"{tag}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_qrels(path: Path, line: str, subtopics: int = 1) -> None:
    lines = [
        line.format(query=query, doc=f"MED-{query}-{place}", grade=(place + query + subtopic) % 3, subtopic=subtopic)
        for query in range(40)
        for place in range(4)
        for subtopic in range(subtopics)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def prepare_trec(folder: Path) -> None:
    write_runs(folder, "# of {tag}\n{query} Q0 {doc} - {score} {tag} beyond the tag")
    write_qrels(folder / "qrels.txt", "{query} 0 {doc} {grade}")


def prepare_diversity(folder: Path) -> None:
    write_runs(folder, "{query} Q0 {doc} {rank} {score} {tag}")
    write_qrels(folder / "qrels.txt", "{query} {subtopic} {doc} {grade}", subtopics=3)


def prepare_beir(folder: Path) -> None:
    write_runs(folder, "{query} Q0 {doc} {rank} {score} {tag}")
    (folder / "beir" / "qrels").mkdir(parents=True)
    header = "query-id\tcorpus-id\tscore\n"
    write_qrels(folder / "beir" / "qrels" / "test.tsv", "{query}\t{doc}\t{grade}")
    qrels = folder / "beir" / "qrels" / "test.tsv"
    qrels.write_text(header + qrels.read_text(encoding="utf-8"), encoding="utf-8")
    write_lines(folder / "beir" / "queries.jsonl", [{"_id": str(q), "text": f"claim {q}"} for q in range(40)])


def prepare_msmarco(folder: Path) -> None:
    write_runs(folder, "{query}\t{doc}\t{rank}")
    write_qrels(folder / "qrels.dev.tsv", "{query}\t0\t{doc}\t{grade}")
    (folder / "queries.dev.tsv").write_text("".join(f"{q}\tclaim {q}\n" for q in range(40)), encoding="utf-8")


LOG = """
inputs:
  impressions: {{path: {folder}/{file}, format: {preset}}}
  interactions: {{path: {folder}/{file}, format: {preset}}}
  rankings: {{path: {folder}/rankings.parquet}}
metrics: [ndcg@5]
compare: {{baseline: old}}
warehouse: {folder}/warehouse
"""
JUDGED = """
inputs:
  judgments: {{path: {folder}/{file}, format: {preset}}}
  queries: {{path: {folder}/queries-00000-of-00001.parquet, format: {preset}}}
  rankings: {{path: {folder}/rankings.parquet}}
metrics: [ndcg@5]
compare: {{baseline: old}}
warehouse: {folder}/warehouse
"""
TREC = """
inputs:
  judgments: {{path: {folder}/{file}, format: {preset}}}
  rankings: {{path: {folder}/runs, format: trec_run}}
metrics: [ndcg@5, map]
conventions: {{order: score}}
compare: {{baseline: old}}
warehouse: {folder}/warehouse
"""
BEIR = TREC.replace("  rankings", "  queries: {{path: {folder}/{file}, format: {preset}}}\n  rankings")
MSMARCO = """
inputs:
  judgments: {{path: {folder}/{file}, format: {preset}}}
  queries: {{path: {folder}/queries.dev.tsv, format: {preset}}}
  rankings: {{path: {folder}/runs, format: {preset}}}
metrics: [ndcg@5]
compare: {{baseline: old}}
warehouse: {folder}/warehouse
"""
PRESETS = {
    "ubi": (prepare_ubi, LOG, "log.ndjson"),
    "serp_arrays": (prepare_arrays, LOG, "serps.json"),
    "ga4": (prepare_ga4, LOG, "events_20261101.json"),
    "huggingface": (prepare_hugging_face, JUDGED, "test-00000-of-00001.parquet"),
    "trec_qrels": (prepare_trec, TREC, "qrels.txt"),
    "trec_diversity_qrels": (prepare_diversity, TREC.replace("map]", "alpha_ndcg@5]"), "qrels.txt"),
    "beir": (prepare_beir, BEIR, "beir"),
    "msmarco": (prepare_msmarco, MSMARCO, "qrels.dev.tsv"),
}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_from_file_to_report(preset: str, spark: SparkSession, tmp_path: Path) -> None:
    prepare, template, file = PRESETS[preset]
    prepare(tmp_path)
    text = template.format(folder=tmp_path, file=file, preset=preset).strip()
    assert len(text.splitlines()) <= MAX_LINES
    (tmp_path / "conf.yaml").write_text(text, encoding="utf-8")
    config = load_config(tmp_path / "conf.yaml").config
    manifest = evaluate(spark, config, DAY).manifest
    if template is not LOG:
        assert (manifest.inputs["judgments"]["kept"], manifest.inputs["rankings"]["kept"]) == (160, 320)
        assert manifest.inputs["rankings"]["rejected"] == {}
    else:
        assert manifest.inputs["impressions"]["kept"] == QUERIES * PAGES * RESULTS
        assert manifest.inputs["interactions"]["kept"] == count_clicks()
        assert manifest.tables["labels"].rows == QUERIES * RESULTS
    page = render_report(Storage(config.warehouse), manifest)
    assert "new" in page
    assert page.count("ndcg@5") > 3
