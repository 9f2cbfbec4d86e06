"""Commands that read a warehouse find it by an option, the configuration, the environment or its folder."""

from pathlib import Path

import pytest

from jobs.cli import assay, invoke
from tests.helpers.published_runs import publish

INPUTS = "inputs: {rankings: {path: r}, judgments: {path: j}}\n"


def test_a_warehouse_that_does_not_exist_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for command in (["runs"], ["fsck"], ["tables", "--sql", "duckdb"], ["report"], ["vacuum", "--keep", "1"]):
        assert invoke(assay, [*command, "--warehouse", str(tmp_path / "nowhere")]) == 3
        assert f"there is no warehouse ({tmp_path / 'nowhere'}): check the path" in capfd.readouterr().err
    assert not (tmp_path / "nowhere").exists()
    assert invoke(assay, ["runs", "--warehouse", str(tmp_path)]) == 0
    assert capfd.readouterr().out == f"No committed runs in {tmp_path}.\n"


def test_the_warehouse_is_that_of_the_option_the_configuration_the_environment_or_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for place in ("a", "b", "c", "warehouse"):
        publish(tmp_path / place, run=f"{place}-1")
    (tmp_path / "assay.yaml").write_text(INPUTS + f"warehouse: {tmp_path / 'b'}\n")
    monkeypatch.chdir(tmp_path)

    def list_runs(*options: str) -> str:
        assert invoke(assay, ["runs", *options]) == 0
        return capfd.readouterr().out

    assert "warehouse-1" in list_runs()
    monkeypatch.setenv("ASSAY_WAREHOUSE", str(tmp_path / "c"))
    assert "c-1" in list_runs()
    assert "b-1" in list_runs("--config", "assay.yaml")
    assert "a-1" in list_runs("--config", "assay.yaml", "--warehouse", "a")
    monkeypatch.delenv("ASSAY_WAREHOUSE")
    monkeypatch.chdir(tmp_path / "a")
    assert invoke(assay, ["runs"]) == 2
    assert "no warehouse is named: give --warehouse or --config, set ASSAY_WAREHOUSE" in capfd.readouterr().err


def test_power_finds_the_warehouse_and_names_the_metrics_and_candidates_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path / "warehouse")
    monkeypatch.chdir(tmp_path)
    assert invoke(assay, ["power", "--delta", "0.01", "--metric", "ndcg@5"]) == 3
    assert "does not compare ndcg@5: did you mean 'ndcg@10'? Known: ndcg@10" in capfd.readouterr().err
    assert invoke(assay, ["power", "--delta", "0.01", "--metric", "ndcg@10", "--candidate", "newer"]) == 3
    assert "does not compare newer: did you mean 'new'? Known: new" in capfd.readouterr().err


def test_runs_are_listed_with_their_ids_in_whole(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    publish(tmp_path, run="aaaaaaaaaaaa-000001", systems=[f"a-system-with-a-long-name-{n}" for n in range(5)])
    publish(tmp_path, run="bbbbbbbbbbbb-000002", committed_at="2026-11-03T04:00:00+00:00")
    assert invoke(assay, ["runs", "--warehouse", str(tmp_path)]) == 0
    lines = [line.split() for line in capfd.readouterr().out.splitlines()]
    newest = "* 2026-11-01 bbbbbbbbbbbb-000002 2026-11-03 04:00:00 old, new 400 c0ffee"
    assert newest.split() in lines
    assert ["2026-11-01", "aaaaaaaaaaaa-000001", "2026-11-02", "04:00:00", "5", "systems", "1,000", "c0ffee"] in lines


def test_explain_says_what_to_do_where_a_run_has_no_labels_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path)
    assert invoke(assay, ["explain", "--query", "q1", "--date", "2026-11-01", "--warehouse", str(tmp_path)]) == 3
    error = capfd.readouterr().err
    assert "no committed run of 2026-11-01 has the table labels" in error
    assert "name a system with --system to explain its list" in error
