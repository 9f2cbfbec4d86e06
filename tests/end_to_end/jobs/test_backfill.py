"""A range of dates with good, missing, bad and failing ones, in one session and resumed."""

import json
from pathlib import Path

from tests.end_to_end.conftest import InTurn

QUERIES, DEPTH = 60, 5
DAYS = [f"2026-11-0{day}" for day in (1, 2, 3, 4)]


def write_day(folder: Path, date: str, *, worse: bool = False, broken: bool = False) -> None:
    """Two systems: `new` has the relevant document one place higher than `old`, or last on a bad day."""
    rankings, judgments = ["system,query_id,doc_id,rank"], ["query_id,doc_id,grade"]
    for query in range(QUERIES):
        judgments += [f"q{query},d{query % 3 + 1},1", f"q{query},d0,0"]
        for system in ("old", "new"):
            place = query % 3 + 1 - (system == "new") if not worse or system == "old" else DEPTH - 1
            documents = [f"d{n}" for n in range(DEPTH) if n != query % 3 + 1]
            documents.insert(place, f"d{query % 3 + 1}")
            names = ["" if broken and query % 2 else document for document in documents]
            rankings += [f"{system},q{query},{name},{rank}" for rank, name in enumerate(names, 1)]
    (folder / date).mkdir()
    (folder / date / "rankings.csv").write_text("\n".join([*rankings, ""]))
    (folder / date / "judgments.csv").write_text("\n".join([*judgments, ""]))


def write_config(folder: Path) -> Path:
    """Write a configuration with a gate that a worse system does not pass."""
    config = folder / "assay.yaml"
    config.write_text(
        f"inputs:\n  rankings: {{path: '{folder}/{{date}}/rankings.csv', format: csv}}\n"
        f"  judgments: {{path: '{folder}/{{date}}/judgments.csv', format: csv}}\n"
        f"warehouse: {folder}/warehouse\nmetrics: [ndcg@5]\ncompare: {{baseline: old, movers: 0}}\n"
        "gate: [{metric: ndcg@5, drop: 0.05, min_queries: 10}]\n"
        "checks: off\nreport: false\ntracking: {enabled: false}\n"
        "spark: {master: 'local[2]', settings: {spark.sql.shuffle.partitions: 1}}\n",
        encoding="utf-8",
    )
    return config


def test_a_backfill_continues_after_bad_dates_and_is_resumed(in_turn: InTurn, tmp_path: Path) -> None:
    write_day(tmp_path, DAYS[0])
    write_day(tmp_path, DAYS[2], broken=True)
    write_day(tmp_path, DAYS[3], worse=True)
    config = write_config(tmp_path)
    command = ("assay", "evaluate", "--config", config, "--output", "json")
    every = ("--from", DAYS[0], "--to", DAYS[3])
    (first,) = in_turn([(*command, *every)])
    rows = json.loads(first.stdout)["dates"]
    assert [(row["date"], row["outcome"], row["exit_code"]) for row in rows] == [
        (DAYS[0], "committed", 0),
        (DAYS[1], "unusable input", 3),
        (DAYS[2], "refused by its checks", 4),
        (DAYS[3], "gate not passed", 6),
    ], first.stderr
    assert first.returncode == 3
    assert "has no data for 2026-11-02" in rows[1]["message"]
    assert "3 of 4 dates did not pass, worst: unusable input (2026-11-02)" in first.stderr
    assert first.stderr.count("starting Spark") == 1
    assert "date=2026-11-04, 4 of 4" in first.stderr

    write_day(tmp_path, DAYS[1])
    second, alone = in_turn([(*command, *every), (*command, "--date", DAYS[0])])
    again = json.loads(second.stdout)["dates"]
    assert [row["outcome"] for row in again] == [
        "already committed",
        "committed",
        "refused by its checks",
        "gate not passed",
    ], second.stderr
    assert second.returncode == 4
    assert (again[0]["run"], again[3]["run"]) == (rows[0]["run"], rows[3]["run"])
    assert json.loads(alone.stdout)["run"] == rows[0]["run"], "a range does the same work as its dates one by one"
