"""Checks without Spark: their configuration, what they compare with, and how they are printed."""

import datetime as dt
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.config.load import load_config
from pipelines.config.model import Config
from pipelines.quality.checks.label_drift import compute_stability_index
from pipelines.quality.past_figures import read_past_figures
from pipelines.quality.registry import CHECKS, QualityFacts, format_percent
from pipelines.quality.results import (
    Result,
    build_refusal,
    format_rejected_row,
    format_results,
    format_samples,
    summarise_results,
)
from pipelines.warehouse.runs import Manifest, TableRecord, list_committed, list_recorded, manifest_path, select_live
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.vacuum import find_removable, remove_runs
from schemas.errors import ConfigurationError

INPUTS = {"rankings": {"path": "r"}, "judgments": {"path": "j"}}


def publish(storage: Storage, date: str, run: str, *, rows: int, status: str = "committed", **inputs: Any) -> Manifest:
    path = f"validation_results/dt={date}/run={run}"
    storage.put(f"{path}/part-0.parquet", run)
    storage.put(f"data_docs/dt={date}/run={run}/index.html", run)
    manifest = Manifest(
        run=run, key=run, dt=date, status=status, committed_at=f"2026-11-09T00:00:0{len(run)}+00:00", seconds={},
        config={"inputs": {"rankings": {"path": "r", "days": 1}} | inputs}, config_hash="c", code="v", spark="4",
        inputs={"rankings": {"kept": rows, "columns": {"rank": "int"}}}, systems=("s",), conventions={},
        tables={"validation_results": TableRecord(path=path, rows=1)},
        checks={"figures": {"rankings": {"lists": rows // 10}, "labels": {"grades": {"1": rows}}},
                "docs": f"data_docs/dt={date}/run={run}"},
    )  # fmt: skip
    storage.put(manifest_path(date, run), manifest.model_dump_json())
    return manifest


def test_checks_are_switched_and_tuned_in_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    settings = "checks: off\nquality: {volume: {threshold: 0.3}}\n"
    file.write_text("inputs: {rankings: {path: r}, judgments: {path: j}}\n" + settings)
    config = load_config(file).config
    assert config.checks == "off", "YAML takes it for false"
    assert (config.quality.for_check("volume").threshold, config.quality.for_check("volume").severity) == (0.3, "warn")
    assert load_config(file, ["quality.volume.severity=error"]).config.quality.for_check("volume").severity == "error"
    with pytest.raises(ConfigurationError, match="did you mean 'volume'"):
        load_config(file, ["quality.volum.threshold=1"])
    with pytest.raises(ConfigurationError, match=r"quality\.volume\.severity"):
        load_config(file, ["quality.volume.severity=fatal"])
    assert Config.model_validate({"inputs": INPUTS}).checks == "full"


def test_every_check_says_why_it_exists_and_what_to_do() -> None:
    for name, check in CHECKS.items():
        assert check.name == name
        assert check.reason.endswith(".") and check.advice and check.measures and check.tables


def test_what_is_usual_comes_from_the_live_runs_of_the_same_place(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    publish(storage, "2026-11-01", "a", rows=100)
    publish(storage, "2026-11-02", "b", rows=900)
    publish(storage, "2026-11-02", "newer", rows=200)
    publish(storage, "2026-11-03", "elsewhere", rows=900, rankings={"path": "other", "days": 1})
    publish(storage, "2026-11-04", "refused", rows=900, status="refused")
    publish(storage, "2026-11-06", "later", rows=900)
    source = {"rankings": {"path": "r", "days": 1}}
    past = read_past_figures(storage, source, dt.date(2026, 11, 5), limit=7)
    assert [run["rankings"]["kept"] for run in past] == [200, 100]
    assert [run["rankings"]["lists"] for run in past] == [20, 10]
    assert len(read_past_figures(storage, source, dt.date(2026, 11, 5), limit=1)) == 1
    facts = QualityFacts(dt.date(2026, 11, 5), {"rankings": {"kept": 60, "columns": {}}}, past)
    assert facts.compute_usual("rankings", lambda figures: figures["kept"]) == 150
    assert facts.find_previous("labels", "grades") == {"1": 200}
    (volume,) = CHECKS["volume"].run(facts, 0.5)
    assert (volume.passed, volume.observed) == (False, "60 rows, 40 % of the usual 150")


def test_a_refused_run_is_not_live_and_is_vacuumed_with_its_pages(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    publish(storage, "2026-11-01", "good", rows=1)
    publish(storage, "2026-11-01", "bad", rows=1, status="refused")
    publish(storage, "2026-11-01", "worse", rows=1, status="refused")
    assert [m.run for m in select_live(list_committed(storage))] == ["good"]
    assert len(list_recorded(storage)) == 3
    removable = find_removable(storage, keep=1, hours=0)
    assert [m.run for m in removable.runs] == ["bad"]
    assert removable.orphans == ()
    remove_runs(storage, removable)
    assert not (tmp_path / "data_docs/dt=2026-11-01/run=bad").exists()
    assert (tmp_path / "data_docs/dt=2026-11-01/run=good/index.html").exists()


def test_the_stability_index_is_that_of_the_formula() -> None:
    assert compute_stability_index({"0": 50, "1": 50}, {"0": 50, "1": 50}) == 0
    # p = (80.5, 20.5)/101, q = (50.5, 50.5)/101
    by_hand = 30 / 101 * (math.log(80.5 / 50.5) - math.log(20.5 / 50.5))
    assert compute_stability_index({"0": 80, "1": 20}, {"0": 50, "1": 50}) == pytest.approx(by_hand, abs=1e-12)


def result(check: str, *, passed: bool = False, severity: Any = "error") -> Result:
    return Result(
        table="t", check=check, column=None, severity=severity, passed=passed, rows=10, failed_rows=3,
        observed="seen\x1b[2J", allowed="none", sample=("a\u202eb",), reason="why.", advice="do this",
    )  # fmt: skip


def test_failures_are_printed_with_samples_and_without_control_characters() -> None:
    lines = format_results(
        summarise_results("full", [result("ok", passed=True), result("w", severity="warn"), result("e")])
    )
    assert lines[0] == "✗ t: 1 passed, 1 warned, 1 failed"
    assert lines[1:4] == ["  ✗ e: seen\\u001b[2J; allowed: none", "      such as a\\u202eb", "      do this"]
    assert lines[4] == "  ! w: seen\\u001b[2J; allowed: none"
    assert format_percent(0.004) == "0.4 %" and format_percent(1.0) == "100 %"


def test_the_error_names_the_cause_before_its_effects() -> None:
    assert build_refusal([result("volume", severity="warn")], "here") is None
    error = build_refusal([result("range"), result("usable_rows"), result("positions_from_zero")], "here")
    assert error is not None and error.exit_code == 4
    assert str(error).startswith("t fails positions_from_zero (the first of 3 checks that fail): seen\\u001b[2J")
    assert error.details[:2] == ["✗ t: 3 failed", "  ✗ positions_from_zero: seen\\u001b[2J; allowed: none"]
    assert "usable_rows" in str(build_refusal([result("range"), result("usable_rows")], "here"))


def test_the_error_is_about_the_table_that_lost_its_rows_rather_than_one_that_refers_to_it() -> None:
    lost = [replace(result(check), table="impressions", failed_rows=10) for check in ("range", "usable_rows")]
    effect = replace(result("events_without_impression"), table="interactions")
    error = build_refusal([effect, *lost], "here")
    assert str(error).startswith("impressions fails usable_rows (the first of 3 checks that fail)")


def test_a_sample_of_a_rejected_row_begins_with_the_column_that_it_is_about() -> None:
    row = json.dumps({"query": "q" * 300, "doc_id": "d", "score": "many"})
    (sample,) = format_samples([format_rejected_row("grade: not a double", row, {"grade": "score"})])
    assert sample.startswith('grade: not a double: {"score":"many","query":"qqq') and len(sample) == 200
    assert format_rejected_row("one of a, b is needed", row, {}) == f"one of a, b is needed: {row}"
    assert format_rejected_row("corrupt", "not JSON", {}) == "corrupt: not JSON"


def test_lost_systems_and_skipped_files_are_named() -> None:
    tables: dict[str, dict[str, Any]] = {
        "rankings": {"lost_systems": ("bad", "bad.run"), "skipped": ("runs/.old.run",)},
        "judgments": {"skipped": ()},
    }
    facts = QualityFacts(dt.date(2026, 11, 1), tables)
    (lost,) = CHECKS["lost_systems"].run(facts, 0)
    assert (lost.passed, lost.sample) == (False, ("bad", "bad.run"))
    (skipped,) = CHECKS["skipped_files"].run(facts, 0)
    assert (skipped.table, skipped.passed, skipped.sample) == ("rankings", False, ("runs/.old.run",))
    assert all(finding.passed for finding in CHECKS["skipped_files"].run(facts, 1))
