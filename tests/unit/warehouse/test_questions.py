"""Every query of `docs/questions.md` runs in DuckDB and answers its question."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.warehouse.runs import manifest_path
from pipelines.warehouse.views import render_duckdb_views
from tests.helpers.published_runs import publish, write

PAGE = Path("docs/questions.md")
QUESTION = re.compile(r"^## (\d+)\. .*?```sql\n(.*?)```", re.DOTALL | re.MULTILINE)
QUESTIONS = {int(number): sql for number, sql in QUESTION.findall(PAGE.read_text(encoding="utf-8"))}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Two days of two systems, the second day with a candidate that is better by 0.1 on three of four queries."""
    place = tmp_path_factory.mktemp("warehouse")
    publish(place, lift=0.0)
    storage, manifest = publish(place, date="2026-11-02", run="b-1")
    failed = {"table": "rankings", "check": "unique", "column": "doc_id", "severity": "warn", "passed": False,
              "rows": 9, "failed_rows": 2, "observed": "2", "allowed": "0", "reason": "r", "advice": "x"}  # fmt: skip
    tables: dict[str, list[dict[str, Any]]] = {
        "quarantine": [{"table": "rankings", "reason": "rank: null", "row": "{}"}] * 3,
        "validation_results": [failed, failed | {"passed": True}],
        "query_changes": [
            {"baseline": "old", "candidate": "new", "metric": "ndcg_at_10", "direction": "loss", "place": 1,
             "query_id": "q1", "query": "red shoes", "weight": 5.0, "baseline_value": 0.5, "candidate_value": 0.25,
             "delta": -0.25, "moved": "d1 (3) 1 → 2", "baseline_top": '[{"doc_id": "d1", "grade": 3.0}]',
             "candidate_top": '[{"doc_id": "d2"}]'}],
    }  # fmt: skip
    shutil.rmtree(storage.local(manifest.tables["query_changes"].path))  # gains only
    records = {name: write(storage, manifest.dt, manifest.run, name, rows) for name, rows in tables.items()}
    whole = manifest.model_copy(update={"tables": dict(manifest.tables) | records})
    storage.put(manifest_path(whole.dt, whole.run), whole.model_dump_json())
    with duckdb.connect() as connection:
        connection.execute(render_duckdb_views(storage))
        yield connection


def ask(database: duckdb.DuckDBPyConnection, number: int) -> list[dict[str, Any]]:
    answer = database.execute(QUESTIONS[number])
    names = [column[0] for column in answer.description]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def test_there_are_ten_questions_and_each_has_an_answer(database: duckdb.DuckDBPyConnection) -> None:
    assert sorted(QUESTIONS) == list(range(1, 11))
    assert all(ask(database, number) for number in QUESTIONS)


def test_the_answers_are_those_of_the_run(database: duckdb.DuckDBPyConnection) -> None:
    gain = pytest.approx(0.1 * 149 / 199)
    means = ask(database, 1)
    assert [row["system"] for row in means] == ["new", "old"] and means[0]["mean"] - means[1]["mean"] == gain
    (better,) = ask(database, 2)
    assert better["delta"] == gain and better["significant"] is True
    assert {row["value"] for row in ask(database, 3)} == {"ios", "desktop"}
    (loss,) = ask(database, 4)
    assert (loss["query"], loss["first_before"], loss["first_after"]) == ("red shoes", "d1", "d2")
    assert [row["change"] for row in ask(database, 5) if row["system"] == "new"] == [None, gain]
    worst = ask(database, 6)
    assert len(worst) == 20 and worst[0]["loss"] == 1 - worst[0]["ndcg_at_10"] >= worst[19]["loss"]
    assert [(row["empty_lists"], row["nothing_relevant"]) for row in ask(database, 7)] == [(0, 19), (0, 19)]
    assert [(row["spread"], row["queries"]) for row in ask(database, 8)] == [(0.0, 50), (0.1, 149)]
    assert [(row["reason"], row["rows"]) for row in ask(database, 9)] == [("rank: null", 3)]
    assert [row["check"] for row in ask(database, 10)] == ["unique"]
