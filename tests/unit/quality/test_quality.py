"""Checks without Spark: their configuration, what they compare with, and how they are told."""

import datetime as dt
import math
from pathlib import Path
from typing import Any

import pytest

from pipelines.config import Config
from pipelines.configure import load
from pipelines.quality.checks import checks
from pipelines.quality.checks.label_drift import stability_index
from pipelines.quality.history import past
from pipelines.quality.registry import Facts, percent
from pipelines.quality.results import Result, lines, refusal, summary, visible
from pipelines.runs import Manifest, TableRecord, committed, live, manifest_name, recorded
from pipelines.storage import Storage
from pipelines.vacuum import find, remove
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
    storage.put(manifest_name(date, run), manifest.model_dump_json())
    return manifest


def test_checks_are_switched_and_tuned_in_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    told = "checks: off\nquality: {volume: {threshold: 0.3}}\n"
    file.write_text("inputs: {rankings: {path: r}, judgments: {path: j}}\n" + told)
    config = load(file).config
    assert config.checks == "off", "YAML takes it for false"
    assert (config.quality.of("volume").threshold, config.quality.of("volume").severity) == (0.3, "warn")
    assert load(file, ["quality.volume.severity=error"]).config.quality.of("volume").severity == "error"
    with pytest.raises(ConfigurationError, match="did you mean 'volume'"):
        load(file, ["quality.volum.threshold=1"])
    with pytest.raises(ConfigurationError, match=r"quality\.volume\.severity"):
        load(file, ["quality.volume.severity=fatal"])
    assert Config.model_validate({"inputs": INPUTS}).checks == "full"


def test_every_check_says_why_it_exists_and_what_to_do() -> None:
    for name, check in checks().items():
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
    found = past(storage, source, dt.date(2026, 11, 5), most=7)
    assert [run["rankings"]["kept"] for run in found] == [200, 100]
    assert [run["rankings"]["lists"] for run in found] == [20, 10]
    assert len(past(storage, source, dt.date(2026, 11, 5), most=1)) == 1
    facts = Facts(dt.date(2026, 11, 5), {"rankings": {"kept": 60, "columns": {}}}, found)
    assert facts.usual("rankings", lambda known: known["kept"]) == 150
    assert facts.previous("labels", "grades") == {"1": 200}
    (volume,) = checks()["volume"].run(facts, 0.5)
    assert (volume.passed, volume.observed) == (False, "60 rows, 40 % of the usual 150")


def test_a_refused_run_is_not_live_and_is_vacuumed_with_its_pages(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    publish(storage, "2026-11-01", "good", rows=1)
    publish(storage, "2026-11-01", "bad", rows=1, status="refused")
    publish(storage, "2026-11-01", "worse", rows=1, status="refused")
    assert [m.run for m in live(committed(storage))] == ["good"]
    assert len(recorded(storage)) == 3
    rubbish = find(storage, keep=1, hours=0)
    assert [m.run for m in rubbish.runs] == ["bad"]
    assert rubbish.orphans == ()
    remove(storage, rubbish)
    assert not (tmp_path / "data_docs/dt=2026-11-01/run=bad").exists()
    assert (tmp_path / "data_docs/dt=2026-11-01/run=good/index.html").exists()


def test_the_stability_index_is_that_of_the_formula() -> None:
    assert stability_index({"0": 50, "1": 50}, {"0": 50, "1": 50}) == 0
    # p = (80.5, 20.5)/101, q = (50.5, 50.5)/101
    by_hand = 30 / 101 * (math.log(80.5 / 50.5) - math.log(20.5 / 50.5))
    assert stability_index({"0": 80, "1": 20}, {"0": 50, "1": 50}) == pytest.approx(by_hand, abs=1e-12)


def result(check: str, *, passed: bool = False, severity: Any = "error") -> Result:
    return Result("t", check, None, severity, passed, 10, 3, "seen\x1b[2J", "none", ("a\u202eb",), "why.", "do this")


def test_what_failed_is_told_with_its_samples_and_nothing_that_a_terminal_obeys() -> None:
    told = lines(summary("full", [result("ok", passed=True), result("w", severity="warn"), result("e")]))
    assert told[0] == "✗ t: 1 passed, 1 warned, 1 failed"
    assert told[1:4] == ["  ✗ e: seen\\x1b[2J; allowed: none", "      such as a\\u202eb", "      do this"]
    assert told[4] == "  ! w: seen\\x1b[2J; allowed: none"
    assert visible("größe 1") == "größe 1"
    assert percent(0.004) == "0.4 %" and percent(1.0) == "100 %"


def test_the_error_names_the_cause_before_its_effects() -> None:
    assert refusal([result("volume", severity="warn")], "here") is None
    error = refusal([result("range"), result("usable_rows"), result("positions_from_zero")], "here")
    assert error is not None and error.exit_code == 4
    assert str(error).startswith("t fails positions_from_zero (the first of 3 checks that fail): seen\\x1b[2J")
    assert error.details[:2] == ["✗ t: 3 failed", "  ✗ range: seen\\x1b[2J; allowed: none"]
    assert "usable_rows" in str(refusal([result("range"), result("usable_rows")], "here"))
