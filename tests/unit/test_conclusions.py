"""What is shown of comparisons, verdicts and splits, and which systems and metrics are compared."""

from typing import Any

import pytest

from jobs.compare import show
from jobs.conclusions import show_conclusions
from pipelines.compare import family_of
from pipelines.compare_runs import Part, RunComparison
from pipelines.config import Config
from pipelines.estimate import pairs_of
from pipelines.runs import Manifest
from udfs.statistics.mix import Cell, split

INPUTS = {"rankings": {"path": "r"}, "judgments": {"path": "j"}}


def config(**values: Any) -> Config:
    return Config.model_validate({"inputs": INPUTS, "metrics": ["ndcg@10", "recall@10"]} | values)


def manifest(**values: Any) -> Manifest:
    text = dict.fromkeys(("run", "key", "status", "committed_at", "config_hash", "code", "spark"), "x")
    usual: dict[str, Any] = {"dt": "2026-11-01", "seconds": {}, "config": {"metrics": ["ndcg@10"]}, "inputs": {}}
    return Manifest(**text | usual | {"systems": (), "conventions": {}, "tables": {}} | values)


def row(metric: str, **values: Any) -> dict[str, Any]:
    usual = {"baseline": "old", "candidate": "new", "segment": "all", "metric": metric, "significant": True}
    numbers = {"delta": 0.02, "delta_low": 0.01, "delta_high": 0.03, "relative": 0.05, "p_value": 0.0004}
    none = dict.fromkeys(("p_randomisation", "p_bootstrap"))
    counts = {"p_adjusted": 0.0008, "wins": 300, "ties": 500, "losses": 200, "detectable_delta": 0.0123}
    return usual | numbers | none | counts | values


def test_each_pair_is_shown_with_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    # judged@10 is computed because others need it, and was not asked for
    show_conclusions(manifest(), [row("ndcg_at_10"), row("judged_at_10")], [], ["ndcg@10"])
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if "new − old" in line)
    figures = ("+0.0200", "[+0.0100, +0.0300]", "+5.0%", "0.0004", "0.0008*", "300 / 500 / 200", "±0.0123")
    assert all(figure in line for figure in figures)
    assert "judged" not in shown
    assert "signs" not in shown


def test_other_tests_stand_beside_the_t_test_where_they_were_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    show_conclusions(manifest(), [row("ndcg_at_10", p_randomisation=0.001, p_bootstrap=0.00005)], [], ["ndcg@10"])
    shown = capsys.readouterr().out
    assert "p, signs" in shown and "0.0010" in shown
    assert "p, boot." in shown and "<.0001" in shown


@pytest.mark.parametrize(("verdict", "mark"), [("pass", "✓"), ("fail", "✗"), ("undecidable", "?")])
def test_a_verdict_is_shown_with_its_reason_and_warning(
    verdict: str, mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"verdict": verdict, "condition": "ndcg@10 ≥ 0.8", "candidate": "new", "reason": "why", "warning": "beware"}
    show_conclusions(manifest(gate=(said | {"segment": "device", "value": "ios"},)), [], [], ["ndcg@10"])
    shown = capsys.readouterr().out
    assert f"{mark} gate {verdict}: ndcg@10 ≥ 0.8 [device = ios] for new: why" in shown
    assert "! beware" in shown


def test_a_reversal_between_runs_is_named_and_so_is_what_else_differs(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = {"ios": Cell(60, 0.8), "web": Cell(40, 0.5)}, {"ios": Cell(30, 0.82), "web": Cell(70, 0.51)}
    reversed_, plain = split(before, after), split(before, before | {"ios": Cell(60, 0.9)})
    assert reversed_ is not None and plain is not None
    parts = [Part("ndcg_at_10", form, "device", s) for form, s in (("macro", reversed_), ("weighted", plain))]
    runs = (manifest(), manifest(dt="2026-11-02", conventions={"ties": "error"}))
    show(RunComparison([row("ndcg_at_10")], parts), runs, ("new", "new"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == (
        "ndcg_at_10, macro: -0.0770 = +0.0145 within + -0.0915 mix of device; a reversal: every device went the other "
        "way than the whole"
    )
    assert lines[-1] == "ndcg_at_10, weighted: +0.0600 = +0.0600 within + +0.0000 mix of device"
    assert "! the runs differ: convention ties: not known → error" in lines


def test_systems_are_compared_with_the_baseline_or_each_with_each() -> None:
    systems = ("a", "b", "c")
    assert pairs_of(config(), systems) == ()
    assert pairs_of(config(compare={"baseline": "b"}), systems) == (("b", "a"), ("b", "c"))
    every = config(compare={"baseline": "b", "pairs": "all"})
    assert pairs_of(every, systems) == (("b", "a"), ("b", "c"), ("a", "c"))
    assert pairs_of(config(compare={"pairs": "all"}), systems) == (("a", "b"), ("a", "c"), ("b", "c"))


def test_the_family_is_the_gates_metrics_and_never_how_alike_lists_are() -> None:
    metrics, gate = ["ndcg@10", "recall@10", "rbo"], [{"metric": "recall@10", "drop": 0.1}]
    named = {"metrics": metrics, "compare": {"baseline": "old"}}
    assert family_of(config(**named)) == ["ndcg_at_10", "recall_at_10"]
    assert family_of(config(**named, gate=gate)) == ["recall_at_10"]
    all_of_them = named | {"compare": {"baseline": "old", "family": "all"}}
    assert family_of(config(**all_of_them, gate=gate)) == ["ndcg_at_10", "recall_at_10"]


def test_lists_are_held_against_the_baseline_where_no_earlier_stage_is_named() -> None:
    assert config(metrics=["rbo"], compare={"baseline": "old"}).other == "old"
    assert config(metrics=["rbo"], compare={"baseline": "old"}, earlier="first").other == "first"
    with pytest.raises(ValueError, match="the metric rbo needs earlier"):
        config(metrics=["rbo"])
