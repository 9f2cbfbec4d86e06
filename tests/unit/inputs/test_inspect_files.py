"""`assay inspect`: samples and profiles of files, the contract they fit, and a draft that loads; all without Spark."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import yaml

from jobs.cli import assay, invoke
from pipelines.inputs.guess import Draft, draft_input, write_draft
from pipelines.inputs.sample import ColumnProfile, profile_columns, sample_file
from tests.helpers.lines import write_lines

LOG = ["impressions", "interactions"]


def draft(path: str) -> Draft:
    (only,) = draft_input(sample_file(path))
    return only


def test_columns_fields_and_elements_are_profiled(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "p.json", {"a": {"b": 3}, "c": ["x", "y"], "d": None}, {"a": {"b": 1}, "c": ["x"], "d": "2"}
    )
    assert profile_columns(sample_file(path).rows) == [
        ColumnProfile("a.b", "int64", rows=2, empty=0, distinct=2, smallest=1, largest=3, values=("3", "1")),
        ColumnProfile("c[]", "string", rows=3, empty=0, distinct=2, smallest="x", largest="y", values=("x", "y")),
        ColumnProfile("d", "string", rows=2, empty=1, distinct=1, smallest="2", largest="2", values=("2",)),
    ]


def test_pages_with_arrays_and_milliseconds_are_drafted_as_impressions(tmp_path: Path) -> None:
    page = {"req": {"id": "s1"}, "q": "Red", "t": 1793520000123, "hits": [{"id": "d1"}, {"id": "d2"}]}
    assert draft(write_lines(tmp_path / "pages.json", page)) == Draft(
        "impressions",
        "hits",
        {
            "serp_id": "req.id",
            "query_id": "lower(trim(q))",
            "doc_id": "item.id",
            "position": "pos + 1",
            "ts": "timestamp_millis(bigint(t))",
        },
        matched=4,
    )


def test_events_with_foreign_names_are_drafted_as_interactions(tmp_path: Path) -> None:
    events = [{"action": kind, "page": "s", "doc": "d", "when": "2026-11-01"} for kind in ("item_click", "add_to_cart")]
    drafted = draft(write_lines(tmp_path / "events.json", *events))
    assert (drafted.table, drafted.missing) == ("interactions", ())
    assert drafted.columns == {
        "event_id": "sha2(to_json(struct(*)), 256)",
        "kind": {"from": "action", "values": {"item_click": "click", "add_to_cart": "cart"}},
        "doc_id": "doc",
        "ts": "when",
        "serp_id": "page",
    }


@pytest.mark.parametrize(
    ("lines", "table", "columns"),
    [
        (["query-id,corpus-id,score", "q1,d1,2"], "judgments", {"query_id": "query-id", "doc_id": "corpus-id"}),
        (["run,qid,docid,rank", "bm25,q1,d1,1"], "rankings", {"system": "run", "query_id": "qid", "doc_id": "docid"}),
        (["q1 Q0 d1 1 3.5 bm25", "q1 Q0 d2 2 3.0 bm25"], "rankings", {}),
        (["q1 0 d1 2", "q1 0 d2 0"], "judgments", {}),
    ],
)
def test_tables_of_judgments_and_rankings_are_recognised(
    tmp_path: Path, lines: list[str], table: str, columns: dict[str, str]
) -> None:
    drafted = draft(write_lines(tmp_path / "file", *lines))
    assert (drafted.table, drafted.missing) == (table, ())
    assert columns.items() <= drafted.columns.items()


def test_positions_from_zero_and_microseconds_of_parquet_are_corrected(tmp_path: Path) -> None:
    table = pa.table({"page_id": ["s"], "query_id": ["q"], "sku": ["d"], "rank": [0], "ts": [1793520000123456]})
    pa.parquet.write_table(table, tmp_path / "i.parquet")
    columns = draft(str(tmp_path / "i.parquet")).columns
    assert (columns["position"], columns["ts"]) == ("rank + 1", "timestamp_micros(ts)")


@pytest.mark.parametrize(
    ("lines", "tables"),
    [
        (
            ['{"index": {"_index": "ubi_queries"}}', {"query_id": "p", "user_query": "x"}],
            ["impressions", "interactions"],
        ),
        (['ubi_events\t{"query_id": "p", "action_name": "click"}'], ["impressions", "interactions"]),
        ([{"judgmentRatings": [{"query": "q", "ratings": []}]}], ["judgments"]),
        ([{"event_name": "x", "event_params": [], "items": []}], ["impressions", "interactions"]),
    ],
)
def test_presets_are_recognised(tmp_path: Path, lines: list[Any], tables: list[str]) -> None:
    sample = sample_file(write_lines(tmp_path / "export", *lines))
    assert sample.format in ("ubi", "ga4")
    assert [one.table for one in draft_input(sample)] == tables


def test_a_table_with_a_clicked_flag_is_pages_and_clicks(tmp_path: Path) -> None:
    lines = [
        "search_id,query,product_id,position,clicked,timestamp",
        "s1,red,a,1,0,2026-11-01",
        "s1,red,b,2,1,2026-11-01",
    ]
    sample = sample_file(write_lines(tmp_path / "log.csv", *lines))
    assert draft_input(sample) == [
        Draft("impressions", None, {}, format="serp_arrays"),
        Draft("interactions", None, {}, format="serp_arrays"),
    ]
    section = {"path": sample.path, "format": "serp_arrays"}
    text = write_draft([(sample, one) for one in draft_input(sample)])
    served = section | {"columns": {"system": "'production'"}}
    assert yaml.safe_load(text) == {"inputs": {"impressions": served, "interactions": section}}


def test_the_system_that_served_is_not_named_where_a_column_or_a_run_does(tmp_path: Path) -> None:
    head, row = "search_id,query,product_id,position,clicked,ts", "s1,red,a,1,0,2026-11-01"
    named = sample_file(write_lines(tmp_path / "named.csv", f"{head},variant", f"{row},b"))
    nameless = sample_file(write_lines(tmp_path / "log.csv", head, row))
    run = sample_file(write_lines(tmp_path / "run", "q1 Q0 d1 1 3.5 bm25"))
    for samples in ([named], [nameless, run]):
        text = write_draft([(sample, one) for sample in samples for one in draft_input(sample)])
        assert "production" not in text


def test_a_clicked_table_without_a_query_is_drafted_with_its_options(tmp_path: Path) -> None:
    lines = ["srch_id,destination,prop_id,position,click_bool,random_bool", "1,7,a,1,0,1", "1,7,b,2,1,1"]
    sample = sample_file(write_lines(tmp_path / "log.csv", *lines))
    text = write_draft([(sample, one) for one in draft_input(sample)])
    assert text.count("    options:\n      # query: ???  # missing: the query, shared by all its executions\n") == 2
    section = {"path": sample.path, "format": "serp_arrays", "options": None}
    assert yaml.safe_load(text) == {"inputs": {"impressions": section, "interactions": section}}
    filled = text.replace("# query: ???", "query: destination")
    assert yaml.safe_load(filled)["inputs"]["interactions"]["options"] == {"query": "destination"}


def test_columns_of_a_clicked_table_that_the_preset_does_not_know_become_options(tmp_path: Path) -> None:
    rows = {"sessionId": [1, 1, 2], "phrase": list("xxy"), "keyword": list("xxy"), "doc": list("aba"),
            "slot": [0.0, 1.0, 0.0], "wasClicked": [False, True, False]}  # fmt: skip
    pa.parquet.write_table(pa.table(rows), tmp_path / "log")
    options = {"files": "parquet", "page": "sessionId", "documents": "doc", "position": "slot", "clicked": "wasClicked"}
    assert [one.options for one in draft_input(sample_file(str(tmp_path / "log")))] == [options, options]


def test_a_session_with_several_pages_is_not_a_page(tmp_path: Path) -> None:
    lines = ["session,query,doc_id,rank,clicked", "1,red,a,1,0", "1,blue,a,1,1"]
    drafts = draft_input(sample_file(write_lines(tmp_path / "log.csv", *lines)))
    assert [one.options for one in drafts] == [{}, {}]


@pytest.mark.parametrize(
    "page",
    [
        {"search_id": "s", "query": "red", "timestamp": 1793491200, "doc_ids": ["a", "b"], "clicks": [0, 1]},
        {"search_id": "s", "query": "red", "timestamp": 1793491200, "doc_ids": ["a", "b"], "clicked_ids": ["b"]},
        {"search_id": "s", "query": "red", "timestamp": 1793491200, "results": [{"sku": "a", "clicked": True}]},
    ],
)
def test_pages_with_their_clicks_are_pages_and_clicks(tmp_path: Path, page: dict[str, Any]) -> None:
    drafts = draft_input(sample_file(write_lines(tmp_path / "pages.json", page)))
    assert [(one.table, one.format, dict(one.options)) for one in drafts] == [
        ("impressions", "serp_arrays", {}),
        ("interactions", "serp_arrays", {}),
    ]


def test_a_column_of_clicks_that_counts_is_no_flag(tmp_path: Path) -> None:
    lines = ["serp_id,query_id,doc_id,position,ts,clicks", "s,q,d,1,2026-11-01,17"]
    assert draft(write_lines(tmp_path / "log.csv", *lines)).table == "impressions"


def test_names_in_camel_case_are_read_as_words(tmp_path: Path) -> None:
    page = {"requestId": "s", "visitor": "u", "searchTerm": "red", "loggedAt": 1793520000123, "results": [{"sku": "a"}]}
    drafted = draft(write_lines(tmp_path / "pages.json", page))
    assert (drafted.table, drafted.missing) == ("impressions", ())
    assert drafted.columns == {
        "serp_id": "requestId",
        "query_id": "lower(trim(searchTerm))",
        "user_id": "visitor",
        "doc_id": "item.sku",
        "position": "pos + 1",
        "ts": "timestamp_millis(bigint(loggedAt))",
    }


def test_events_of_other_kinds_are_left_out(tmp_path: Path) -> None:
    kinds = ("resultClick", "pageView", "add_to_cart", "scroll")
    events = [{"eventType": kind, "requestId": "s", "sku": "a", "time": "2026-11-01"} for kind in kinds]
    drafted = draft(write_lines(tmp_path / "events.json", *events))
    assert drafted.where == "eventType in ('resultClick', 'add_to_cart')"
    assert drafted.columns["kind"] == {"from": "eventType", "values": {"resultClick": "click", "add_to_cart": "cart"}}
    sample = sample_file(str(tmp_path / "events.json"))
    assert yaml.safe_load(write_draft([(sample, drafted)]))["inputs"]["interactions"]["where"] == drafted.where


def test_the_tables_of_an_ms_marco_folder_are_drafted_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole folder was drafted as what its first file is: judgments would have been read as documents."""
    folder = tmp_path / "msmarco"
    (folder / "runs").mkdir(parents=True)
    write_lines(folder / "collection.tsv", f"1\t{'a passage ' * 20}")
    write_lines(folder / "qrels.dev.tsv", "7\t0\t1\t1")
    write_lines(folder / "queries.dev.tsv", "7\twhat is it")
    write_lines(folder / "runs" / "bm25.tsv", "7\t1\t1", "7\t2\t2")
    assert invoke(assay, ["inspect", str(folder), "--output", "json"]) == 0
    inputs = yaml.safe_load(json.loads(capsys.readouterr().out)["draft"])["inputs"]
    assert {table: Path(source["path"]).name for table, source in inputs.items()} == {
        "documents": "collection.tsv",
        "judgments": "qrels.dev.tsv",
        "queries": "queries.dev.tsv",
        "rankings": "runs",
    }


@pytest.mark.parametrize(
    ("name", "separator", "options"),
    [
        ("q.csv", ",", {}),
        ("q.csv.gz", ",", {}),
        ("q.tsv", "\t", {"sep": "\t"}),
        ("q.txt", ";", {"files": "csv", "sep": ";"}),
    ],
)
@pytest.mark.parametrize(
    "header",
    [
        ["query_id", "user_query", "query_response_hit_ids", "application"],
        ["_source.query_id", "_source.action_name", "_source.application"],
    ],
)
def test_ubi_in_csv_is_recognised(
    tmp_path: Path, header: list[str], name: str, separator: str, options: dict[str, str]
) -> None:
    content = f"{separator.join(header)}\n{separator.join('x' for _ in header)}\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    drafts = draft_input(sample_file(str(tmp_path / name)))
    assert [(one.table, dict(one.columns), dict(one.options)) for one in drafts] == [
        ("impressions", {"system": "application"}, options),
        ("interactions", {}, options),
    ]


def test_a_table_of_queries_is_no_search_of_ubi(tmp_path: Path) -> None:
    assert draft(write_lines(tmp_path / "q.csv", "query_id,user_query,weight", "q1,red shoes,3")).table == "queries"


def test_files_that_are_read_alike_are_one_source(tmp_path: Path) -> None:
    """A configuration with the same key twice cannot be loaded."""
    query = write_lines(tmp_path / "q.json", {"query_id": "p", "user_query": "x", "application": "shop"})
    event = write_lines(tmp_path / "e.json", {"query_id": "p", "action_name": "click", "application": "shop"})
    samples = [sample_file(query), sample_file(event)]
    text = write_draft([(sample, one) for sample in samples for one in draft_input(sample)])
    paths = {"path": [query, event], "format": "ubi"}
    assert yaml.safe_load(text) == {
        "inputs": {"impressions": paths | {"columns": {"system": "application"}}, "interactions": paths}
    }


def test_a_second_source_of_another_shape_is_a_comment(tmp_path: Path) -> None:
    one = write_lines(tmp_path / "one.csv", "query_id,doc_id,grade", "q,d,1")
    other = write_lines(tmp_path / "other.csv", "qid,sku,rating", "q,d,1")
    samples = [sample_file(one), sample_file(other)]
    text = write_draft([(sample, draft(sample.path)) for sample in samples])
    assert yaml.safe_load(text) == {"inputs": {"judgments": {"path": one, "format": "csv"}}}
    assert f"  #       path: {other}\n" in text


def test_other_separators_are_written(tmp_path: Path) -> None:
    for separator in ("\t", ";"):
        lines = [separator.join(line) for line in (("query_id", "doc_id", "grade"), ("q", "d", "1"))]
        assert draft(write_lines(tmp_path / "file", *lines)).options == {"sep": separator}


@pytest.mark.parametrize(
    ("name", "lines", "table"),
    [
        ("run.bm25.tsv", ["7\t100\t1", "7\t200\t2"], "rankings"),
        ("queries.dev.tsv", ["7\twhat is a lamp now"], "queries"),
        ("file", ["7\twhat is a lamp now"], "queries"),
        ("collection.tsv", ["7\ta short passage"], "documents"),
        ("file", ["7\t" + "a long passage " * 20], "documents"),
        ("msmarco-docs.tsv", ["D7\thttps://example.org\ta title\tthe body"], "documents"),
    ],
)
def test_files_of_msmarco_are_recognised(tmp_path: Path, name: str, lines: list[str], table: str) -> None:
    sample = sample_file(write_lines(tmp_path / name, *lines))
    assert (sample.format, [one.table for one in draft_input(sample)]) == ("msmarco", [table])
    assert sample.rows.num_rows == len(lines)


def test_the_folder_of_a_beir_data_set_is_recognised(tmp_path: Path) -> None:
    folder = tmp_path / "scifact"
    (folder / "qrels").mkdir(parents=True)
    write_lines(folder / "corpus.jsonl", {"_id": "d", "title": "T", "text": "x"})
    write_lines(folder / "queries.jsonl", {"_id": "q", "text": "x"})
    write_lines(folder / "qrels" / "dev.tsv", "query-id\tcorpus-id\tscore", "q\td\t1")
    sample = sample_file(str(folder))
    assert (sample.format, sample.options, sample.file) == ("beir", {"split": "dev"}, "qrels/dev.tsv")
    assert [one.table for one in draft_input(sample)] == ["judgments", "queries", "documents"]
    single = sample_file(str(folder / "queries.jsonl"))
    assert (single.format, single.tables) == ("beir", ("queries",))


@pytest.mark.parametrize(
    ("name", "row", "preset", "tables"),
    [
        (
            "a.parquet",
            {"event_name": "x", "event_params": ["k"], "items": ["i"]},
            "ga4",
            ["impressions", "interactions"],
        ),
        ("a.parquet", {"query-id": 1, "corpus-id": "d", "score": 1}, "huggingface", ["judgments"]),
        ("a.parquet", {"query": "x", "product_id": "d", "esci_label": "E"}, "huggingface", ["judgments"]),
        ("a.parquet", {"query_id": 1, "passages": {"passage_text": ["x"]}}, "huggingface", ["judgments"]),
        ("queries.parquet", {"_id": "1", "title": "", "text": "x"}, "huggingface", ["queries"]),
        ("a.parquet", {"_id": "1", "title": "T", "text": "x"}, "huggingface", ["documents"]),
    ],
)
def test_presets_are_recognised_in_parquet(
    tmp_path: Path, name: str, row: dict[str, Any], preset: str, tables: list[str]
) -> None:
    pa.parquet.write_table(pa.Table.from_pylist([row]), tmp_path / name)
    sample = sample_file(str(tmp_path / name))
    assert (sample.format, [one.table for one in draft_input(sample)]) == (preset, tables)


def test_texts_of_four_words_are_no_qrels(tmp_path: Path) -> None:
    assert sample_file(write_lines(tmp_path / "x.csv", "name of the product", "a lamp of iron")).format == "csv"


def test_the_file_of_a_folder_that_was_read_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").mkdir()
    write_lines(tmp_path / "runs" / "bm25.txt", "q1 Q0 d1 1 3.5 bm25")
    assert invoke(assay, ["inspect", str(tmp_path / "runs")]) == 0
    assert "trec_run, the first row of bm25.txt" in capsys.readouterr().out


def test_qrels_with_lines_for_several_subtopics_are_those_of_diversity(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 1 a 1\n1 2 a 0\n1 1 b 1\n", encoding="utf-8")
    sample = sample_file(str(tmp_path / "qrels"))
    assert sample.format == "trec_diversity_qrels"
    assert [one.table for one in draft_input(sample)] == ["judgments"]
    (tmp_path / "plain").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n", encoding="utf-8")
    assert sample_file(str(tmp_path / "plain")).format == "trec_qrels"


def test_a_run_with_comments_and_fields_after_the_tag_is_a_run(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("# of bm25\n\t\t\n1 Q0 a 0 9.5 bm25 and more\n1 Q0 b 1 8 bm25\n", encoding="utf-8")
    sample = sample_file(str(tmp_path / "run"))
    assert (sample.format, sample.rows.num_rows) == ("trec_run", 2)
    assert [one.table for one in draft_input(sample)] == ["rankings"]
