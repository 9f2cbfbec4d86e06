"""The queries of `docs/questions.md`, data to ask them of, and their answers."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.warehouse.runs import manifest_path
from pipelines.warehouse.storage import Storage
from tests.helpers.published_runs import publish, write

_SECTION = re.compile(r"^## (\d+)\. (.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_QUERY = re.compile(r"```sql\n(.*?)```", re.DOTALL)
SECTIONS = {
    int(number): _QUERY.findall(text)
    for number, text in _SECTION.findall(Path("docs/questions.md").read_text(encoding="utf-8"))
}
# Where dialects differ, the query for DuckDB comes first and that for Spark SQL second.
DUCKDB = {number: queries[0] for number, queries in SECTIONS.items()}
SPARK = {number: queries[-1] for number, queries in SECTIONS.items()}


def publish_two_days(place: Path) -> Storage:
    """Two days of two systems, the second day with a candidate that is better by 0.1 on three of four queries."""
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
    return storage


def check_answers(ask: Callable[[int], list[dict[str, Any]]]) -> None:
    """Check the answer to every question."""
    gain = pytest.approx(0.1 * 149 / 199)
    means = ask(1)
    assert [row["system"] for row in means] == ["new", "old"] and means[0]["mean"] - means[1]["mean"] == gain
    (better,) = ask(2)
    assert better["delta"] == gain and better["significant"] is True
    assert {row["value"] for row in ask(3)} == {"ios", "desktop"}
    (loss,) = ask(4)
    assert (loss["query"], loss["first_before"], loss["first_after"]) == ("red shoes", "d1", "d2")
    assert [row["change"] for row in ask(5) if row["system"] == "new"] == [None, gain]
    worst = ask(6)
    assert len(worst) == 20 and worst[0]["loss"] == 1 - worst[0]["ndcg_at_10"] >= worst[19]["loss"]
    assert [(row["empty_lists"], row["nothing_relevant"]) for row in ask(7)] == [(0, 19), (0, 19)]
    assert [(row["spread"], row["queries"]) for row in ask(8)] == [(0.0, 50), (0.1, 149)]
    assert [(row["table"], row["reason"], row["rows"]) for row in ask(9)] == [("rankings", "rank: null", 3)]
    assert [(row["check"], row["column"]) for row in ask(10)] == [("unique", "doc_id")]
