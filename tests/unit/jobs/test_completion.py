"""What the shell offers for options whose values are in the warehouse."""

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from jobs.cli import assay
from tests.helpers.published_runs import publish


def complete(arguments: list[str], incomplete: str = "") -> list[str]:
    return [item.value for item in ShellComplete(assay, {}, "assay", "_").get_completions(arguments, incomplete)]


def test_runs_dates_systems_and_metrics_of_the_warehouse_are_offered(tmp_path: Path) -> None:
    publish(tmp_path)
    publish(tmp_path, date="2026-11-02", run="b-1", systems=["old", "newest"], committed_at="2026-11-04T00:00:00+00:00")
    place = ["--warehouse", str(tmp_path)]
    dates = ["2026-11-02", "2026-11-01"]
    assert complete(["report", *place, "--run"]) == [*dates, "b-1", "aaaaaaaaaaaa-000001"]
    assert complete(["compare", *place], "2026") == dates
    assert complete(["trend", *place, "--system"], "ne") == ["newest", "new"]
    assert complete(["trend", *place, "--metric"], "recall") == ["recall@10", "recall@20"]
    assert complete(["explain", *place, "--date"]) == dates


def test_without_a_warehouse_the_shell_offers_every_metric_and_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_WAREHOUSE", raising=False)
    assert complete(["report", "--run"]) == []
    assert complete(["metrics"], "ndcg") == ["ndcg"]
    assert complete(["report", "--warehouse", str(tmp_path / "nowhere"), "--run"]) == []
