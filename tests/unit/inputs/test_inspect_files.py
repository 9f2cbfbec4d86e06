"""`assay inspect`: samples and profiles of files, the contract they fit, and a draft that loads; all without Spark."""

from __future__ import annotations

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
from schemas.errors import InputError


def write_lines(path: Path, *rows: object) -> str:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return str(path)


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


def test_what_is_missing_is_marked_in_the_draft(tmp_path: Path) -> None:
    sample = sample_file(write_lines(tmp_path / "i.csv", "serp_id,query_id,doc_id,ts", "s,q,d,2026-11-01"))
    text = write_draft([(sample, draft(sample.path))])
    assert "      # position: ???  # missing: the position on the page, counted from 1\n" in text
    assert yaml.safe_load(text) == {"inputs": {"impressions": {"path": sample.path, "format": "csv", "columns": None}}}


def test_paths_of_a_draft_are_relative_to_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipelines.config.load import load_config

    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    write_lines(tmp_path / "pages.json", {"page_id": "s1", "q": "red", "t": 1793520000, "results": ["d1", "d2"]})
    assert invoke(assay, ["inspect", "pages.json", "--draft", "conf/draft.yaml"]) == 0
    assert "path: ../pages.json" in (tmp_path / "conf" / "draft.yaml").read_text()
    inputs = load_config("conf/draft.yaml", ["inputs.interactions.path=events"]).config.inputs
    assert inputs.impressions is not None and inputs.impressions.path == "pages.json"


def test_the_command_writes_a_draft_that_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pipelines.config.load import load_config

    page = {"page_id": "s1", "q": "\x1b[31mRed", "t": 1793520000, "results": ["d1", "d2"]}
    event = {"action": "select_item", "page_id": "s1", "sku": "d1", "t": 1793520000}
    files = [write_lines(tmp_path / "pages.json", page), write_lines(tmp_path / "events.json", event)]
    place = tmp_path / "draft.yaml"
    assert invoke(assay, ["inspect", *files, "--draft", str(place)]) == 0
    printed = capsys.readouterr().out
    assert "It looks like impressions." in printed
    assert "It looks like interactions." in printed
    assert "\x1b" not in printed
    inputs = load_config(place).config.inputs
    assert inputs.impressions is not None
    assert inputs.impressions.columns["doc_id"] == "item"
    assert invoke(assay, ["inspect", *files, "--draft", str(place)]) == 2
    assert invoke(assay, ["inspect", files[0], "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["columns"][0]["path"] == "page_id"
    with pytest.raises(InputError, match="no such file"):
        sample_file(str(tmp_path / "nowhere"))
