"""The sheet of judged queries: what is drawn from a published run, what is written, and what comes back."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from jobs.judge import command, draw_sample
from pipelines.comparison.judging.select import SamplePlan, shuffle_documents
from pipelines.comparison.judging.sheet import SheetRow, neutralise_formula, read_grades, write_sheet
from pipelines.warehouse.runs import Manifest, TableRecord
from pipelines.warehouse.storage import Storage
from schemas.errors import ConfigurationError, InputError
from tests.helpers.published_runs import publish, write

QUERIES = [f"q{number}" for number in range(200)]


def publish_drawn(place: Path, *, hull: bool = False, share: float | None = 0.9) -> tuple[Storage, Manifest]:
    """A run whose queries with an even number are nine times as uncertain as the others."""
    storage, manifest = publish(place, queries=QUERIES)
    random = np.random.default_rng(1)
    metrics = [
        {
            "system": system, "query_id": query, "weight": 1.0, "retrieved": 10, "duplicates": 0, "tied": 0,
            "labelled": 5, "relevant": 3, "judged": 4, "ndcg_at_10": float(random.random()),
            "ndcg_at_10__sd": 0.1, "ndcg_at_10__delta_sd": None if system == "old" else 0.09 if at % 2 == 0 else 0.01,
        }
        for system in ("new", "old")
        for at, query in enumerate(QUERIES)
    ]  # fmt: skip
    compared = {
        "baseline": "old", "candidate": "new", "segment": "all", "value": "all", "metric": "ndcg_at_10", "delta": 0.02,
        "delta_low": -0.06, "delta_high": 0.1, "stderr": 0.04, "label_share": share, "queries": 200, "wins": 1,
        "ties": 0, "losses": 1, "unjudged": 0, "hull": hull, "other": 0.2 if hull else None,
    }  # fmt: skip
    records = {
        name: write(storage, manifest.dt, "drawn", name, rows)
        for name, rows in (("query_metrics", metrics), ("comparisons", [compared]))
    }
    config = dict(manifest.config) | {"compare": {"baseline": "old"}, "inputs": {"rankings": {"path": "r"}}}
    tables: dict[str, TableRecord] = dict(manifest.tables) | records
    return storage, manifest.model_copy(update={"tables": tables, "config": config})


def draw(place: Path, **changes: Any) -> SamplePlan:
    arguments = {"baseline": None, "metric": None, "queries": 40, "seed": 1} | changes
    hull = arguments.pop("hull", False)
    share = arguments.pop("share", 0.9)
    return draw_sample(*publish_drawn(place, hull=hull, share=share), candidate="new", **arguments)


def test_uncertain_queries_are_drawn_more_often_with_their_chances(tmp_path: Path) -> None:
    sample = draw(tmp_path)
    assert len(sample.chances) == 40
    uncertain = [int(name[1:]) % 2 == 0 for name in sample.chances]
    assert sum(uncertain) > 30
    floor = 0.25 * 0.05
    scale = 40 / (100 * (0.09 + floor))
    assert set(np.round(list(sample.chances.values()), 9)) == {round(scale * 0.09, 9), round(scale * floor, 9)}
    assert sample.present == (-0.06, 0.1)
    assert 0.02 < sample.expected_width < 0.16


def test_two_answers_are_expected_to_be_corrected_without_the_model(tmp_path: Path) -> None:
    assert draw(tmp_path / "hull", hull=True).expected_width > draw(tmp_path / "one").expected_width


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"candidate": "newer"}, "does not compare 'newer' with 'old'"),
        ({"metric": "recall@10"}, "does not compare recall@10"),
        ({"baseline": "older"}, "does not compare 'new' with 'older'"),
        ({"share": None}, "has no posterior"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    storage, manifest = publish_drawn(tmp_path, share=changes.pop("share", 0.9))
    arguments = {"candidate": "new", "baseline": None, "metric": None, "queries": 40, "seed": 1}
    with pytest.raises(InputError, match=problem):
        draw_sample(storage, manifest, **(arguments | changes))


def test_too_few_queries_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="29 judged queries are too few to decide anything"):
        draw(tmp_path, queries=29)


def test_documents_are_shuffled_by_hash_in_any_order_they_come_in() -> None:
    docs = [f"d{number}" for number in range(20)]
    shuffled = shuffle_documents("q1", docs, 1)
    assert sorted(shuffled) == sorted(docs)
    assert shuffled == shuffle_documents("q1", docs[::-1], 1)
    assert shuffled not in (docs, shuffle_documents("q2", docs, 1), shuffle_documents("q1", docs, 2))


@pytest.mark.parametrize("text", ["=1+2", "+1", "-1", "@SUM(A1)", "\t=1", "'=1", "''-x"])
def test_formulas_are_neutralised_and_come_back_as_ids(tmp_path: Path, text: str) -> None:
    assert neutralise_formula(text) == f"'{text}"
    path = tmp_path / "sheet.csv"
    write_sheet(path, [SheetRow(text, text, text, text, 0.25)])
    with path.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert all(row[name].startswith("'") for name in ("query_id", "query", "doc_id"))
    assert row["title"].lstrip("'")[0] in "=+-@" and row["title"][0] == "'"
    assert float(row["chance"]) == 0.25
    filled = path.read_text(encoding="utf-8").rstrip("\n") + "2\n"
    path.write_text(filled, encoding="utf-8")
    assert read_grades(path) == {(text, text): 2.0}


@pytest.mark.parametrize("text", ["red shoes", "it's = fine", "'quoted'", "a-b", ""])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert neutralise_formula(text) == text


def test_texts_stay_on_one_line_and_ids_with_a_line_break_are_refused(tmp_path: Path) -> None:
    write_sheet(tmp_path / "a.csv", [SheetRow("q", "red\r\nshoes", "d", "a\u2028b", 1.0)])
    lines = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "q,red shoes,d,a b,1.0,"
    with pytest.raises(InputError, match="line break"):
        write_sheet(tmp_path / "b.csv", [SheetRow("q\n", "", "d", "", 1.0)])


def test_json_lines_have_the_ids_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "sheet.jsonl"
    write_sheet(path, [SheetRow("=q", "text", "'-d", "title", 0.5)])
    row = json.loads(path.read_text(encoding="utf-8"))
    assert row == {"query_id": "=q", "query": "text", "doc_id": "'-d", "title": "title", "chance": 0.5, "grade": None}
    path.write_text(json.dumps(row | {"grade": 3}) + "\n", encoding="utf-8")
    assert read_grades(path) == {("=q", "'-d"): 3.0}


def test_a_graded_sheet_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, [])
    with pytest.raises(ConfigurationError, match="may contain grades"):
        write_sheet(path, [])
    with pytest.raises(ConfigurationError, match="format"):
        write_sheet(tmp_path / "sheet.xlsx", [])


def test_two_judges_are_compared_by_the_pairs_that_both_graded(tmp_path: Path) -> None:
    grades = {"anna": ["0", "1", "3", ""], "ben": ["0", "2", "3", "1"]}
    for name, values in grades.items():
        rows = "".join(f"q{at},,d,,0.5,{value}\n" for at, value in enumerate(values))
        (tmp_path / f"{name}.csv").write_text(f"query_id,query,doc_id,title,chance,grade\n{rows}", encoding="utf-8")
    sheets = [str(tmp_path / f"{name}.csv") for name in grades]
    result = json.loads(CliRunner().invoke(command, ["--agree", *sheets, "--output", "json"]).output)
    # mean (a − b)² is 1/3; mean a² + mean b² − 2·mean a·mean b = 10/3 + 13/3 − 2 · 4/3 · 5/3
    assert result["kappa"] == pytest.approx(1 - (1 / 3) / (23 / 3 - 40 / 9))
    assert (result["pairs"], result["queries"]) == (3, 3)
    assert "weighted κ 0.897" in CliRunner().invoke(command, ["--agree", *sheets]).output


def test_an_agreement_of_one_query_has_no_interval(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("query_id,doc_id,grade\nq,a,1\nq,b,2\n", encoding="utf-8")
    arguments = ["--agree", str(sheet), str(sheet)]
    assert "weighted κ 1.000, 95 % interval unknown" in CliRunner().invoke(command, arguments).output
    result = json.loads(CliRunner().invoke(command, [*arguments, "--output", "json"]).output)
    assert (result["kappa"], result["low"], result["high"]) == (1.0, None, None)


@pytest.mark.parametrize("text", ["query_id,doc_id,grade\nq,d,good\n", "query_id,doc\nq,d\n"])
def test_a_sheet_that_cannot_be_read_is_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"is not a number|has no column doc_id"):
        read_grades(path)


@pytest.mark.parametrize("arguments", [[], ["--warehouse", "w"]])
def test_missing_options_are_usage_errors(arguments: list[str], tmp_path: Path) -> None:
    assert CliRunner().invoke(command, arguments).exit_code == 2


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("wide.csv", f"query_id,doc_id,grade\n{'x' * 200_000},d,1\n", "field larger than field limit"),
        ("nan.csv", "query_id,doc_id,grade\nq,d,nan\n", "'nan' is not a number"),
        ("inf.csv", "query_id,doc_id,grade\nq,d,-inf\n", "'-inf' is not a number"),
        ("number.jsonl", "5\n", "the line is not a JSON object"),
        ("deep.jsonl", "[" * 100_000, "cannot read the sheet"),
    ],
    ids=lambda text: text[:12],
)
def test_a_sheet_that_is_none_is_refused_with_its_place(tmp_path: Path, name: str, content: str, problem: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=problem) as caught:
        read_grades(path)
    assert str(path) in str(caught.value)
