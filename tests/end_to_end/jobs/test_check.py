"""`assay check`, as a sensor runs it before the job."""

import json
from pathlib import Path

from tests.end_to_end.conftest import InTurn


def test_a_sensor_lets_good_data_through_and_stops_bad_data(in_turn: InTurn, demo: Path, tmp_path: Path) -> None:
    check = ("assay", "check", "--config", demo / "demo.yaml", "--date", "2026-11-01", "--set", "checks=full")
    narrow = ("--set", "quality.rankings_without_label={severity: error, threshold: 0}", "--output", "json")
    few = ("--set", "inputs.judgments.where=query_id < 'q00100'", "--set", "quality.sample_rows=1000000")
    good, bad = in_turn([(*check, "--docs", tmp_path / "docs"), (*check, *narrow, *few)])
    assert good.returncode == 0, good.stderr
    assert [line[:11] for line in good.stdout.splitlines() if line[0] == "✓"] == [
        "✓ rankings:", "✓ queries: ", "✓ judgments",
    ]  # fmt: skip
    assert {p.name for p in (tmp_path / "docs").iterdir()} == {
        "index.html", "rankings.html", "queries.html", "judgments.html",
    }  # fmt: skip
    assert bad.returncode == 4
    assert "rankings fails rankings_without_label" in bad.stderr
    assert "8,700 of 9,000 lists" in bad.stderr
    assert "Traceback" not in bad.stderr
    summary = json.loads(bad.stdout)
    assert summary["tables"]["rankings"]["failed"] == 1
    assert summary["failing"][0]["check"] == "rankings_without_label"
    assert not (demo / "warehouse" / "validation_results").exists()
