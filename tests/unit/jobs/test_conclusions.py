"""Terminal output of comparisons, verdicts and splits, and which systems and metrics are compared."""

from typing import Any

import pytest
from rich.console import Console

from jobs.compare import require_paired_queries, show_two_runs
from jobs.support.conclusions import show_comparisons, show_conclusions
from pipelines.comparison.compare import select_test_family
from pipelines.comparison.estimate import list_pairs
from pipelines.comparison.two_runs import MixPart, RunComparison
from pipelines.config.model import Config
from pipelines.warehouse.runs import Manifest
from schemas.errors import InputError
from udfs.statistics.mix import SegmentCell, split_difference

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
    assert "new − old, paired by query" in shown
    line = next(line for line in shown.splitlines() if "ndcg@10" in line)
    figures = ("+0.0200", "[+0.0100, +0.0300]", "+5.0%", ".0004", ".0008*", "300/500/200", "±0.0123")
    assert all(figure in line for figure in figures)
    assert "judged" not in shown
    assert all(heading in shown for heading in ("Δ", "95 % CI", "change", "(adjusted)", "W/T/L", "detectable"))
    assert "signs" not in shown


@pytest.mark.parametrize(
    ("width", "left_out"), [(66, ["W/T/L", "detectable", "change"]), (86, ["detectable", "W/T/L"]), (130, [])]
)
def test_a_narrow_terminal_shows_fewer_columns_rather_than_cut_ones(
    width: int, left_out: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(metric, candidate="neural", baseline="bm25") for metric in ("ndcg_at_10", "dcg_at_10")]
    show_comparisons(Console(width=width), rows, ["ndcg@10", "dcg@10"], 0.95)
    shown = capsys.readouterr().out
    assert "…" not in shown and shown.count("neural − bm25") == 1
    assert shown.count("[+0.0100, +0.0300]") == 2 and shown.count(".0008*") == 2
    assert [heading for heading in ("detectable", "W/T/L", "change") if heading not in shown] == sorted(
        left_out, key=["detectable", "W/T/L", "change"].index
    )


def test_other_tests_have_columns_where_they_were_configured(capsys: pytest.CaptureFixture[str]) -> None:
    show_conclusions(manifest(), [row("ndcg_at_10", p_randomisation=0.001, p_bootstrap=0.00005)], [], ["ndcg@10"])
    shown = capsys.readouterr().out
    assert "(signs)" in shown and ".0010" in shown
    assert "(boot.)" in shown and "< .0001" in shown


def test_what_a_comparison_rests_on_is_shown_for_the_first_metric(capsys: pytest.CaptureFixture[str]) -> None:
    rests = {"label_share": 0.61, "unseen_weight": 0.3, "untrafficked": None, "hull": True, "other": -0.04}
    rows = [row("recall_at_10", **rests | {"label_share": 0.5}), row("ndcg_at_10", **rests)]
    show_conclusions(manifest(), rows, [], ["ndcg@10", "recall@10"])
    shown = capsys.readouterr().out
    below = shown.partition("What the difference in ndcg@10 rests on")[2]
    line = next(line for line in below.splitlines() if "new − old" in line)
    assert line.split() == ["new", "−", "old", "61%", "30%", "–", "+0.0200", "and", "-0.0400"]
    assert "50%" not in below and below.count("new − old") == 1
    show_conclusions(manifest(), [row("ndcg_at_10", **rests | {"hull": False})], [], ["ndcg@10"])
    assert "one answer" in capsys.readouterr().out
    show_conclusions(manifest(), [row("ndcg_at_10", label_share=None)], [], ["ndcg@10"])
    assert "rests on" not in capsys.readouterr().out, "without draws there is nothing to say"


def test_other_ways_to_count_unjudged_documents_fit_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rules = ("posterior", "cut_then_condense", "zero", "condense")
    variants: list[dict[str, Any]] = [
        {"baseline": "bm25", "candidate": candidate, "metric": "ndcg_at_10", "unjudged": rule}
        | {"delta": delta, "p_value": 0.01, "gate": gate, "queries": 109 if rule == "cut_then_condense" else 200}
        for candidate, delta, gate in (("pruned", -0.0529, None), ("neural", 0.1652, "pass"))
        for rule in rules
    ]
    show_conclusions(manifest(), [], variants, ["ndcg@10"])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Δ ndcg@10 against bm25, with unjudged documents …"
    assert lines[-2].split() == ["neural", "+0.1652*", "✓", "+0.1652*", "✓", "n=109", "+0.1652*", "✓", "+0.1652*", "✓"]
    assert lines[-1].split() == ["pruned", "-0.0529*", "-0.0529*", "n=109", "-0.0529*", "-0.0529*"]


def test_sums_of_gains_are_shown_by_query_and_by_traffic(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row("ndcg_at_10", weighted_delta=0.015), row("dcg_at_10", delta=0.5, weighted_delta=-0.25)]
    show_conclusions(manifest(), rows, [], ["ndcg@10", "dcg@10"])
    lines = [line for line in capsys.readouterr().out.splitlines() if "dcg@10" in line]
    assert [("+0.5000" in line, "-0.2500" in line) for line in lines] == [(False, False), (True, True)]
    show_conclusions(manifest(), rows[:1], [], ["ndcg@10"])
    assert "traffic" not in capsys.readouterr().out


@pytest.mark.parametrize(("verdict", "mark"), [("pass", "✓"), ("fail", "✗"), ("undecidable", "?")])
def test_a_verdict_is_shown_with_its_reason_and_warning(
    verdict: str, mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"condition": "ndcg@10 ≥ 0.8", "candidate": "new", "reason": "why", "warning": "beware"}
    entry |= {"verdict": verdict, "segment": "device", "value": "ios"}
    show_conclusions(manifest(gate=(entry,)), [], [], ["ndcg@10"])
    shown = capsys.readouterr().out
    assert f"{mark} gate {verdict}: ndcg@10 ≥ 0.8 [device = ios] for new: why" in shown
    assert "! beware" in shown


def test_readings_are_grouped_by_candidate_and_three_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    rules = ["recall_is_a_hit_rate", "low_power", "two_answers", "labels_taken_as_true"]
    readings = [
        {"rule": rule, "baseline": "old", "candidate": candidate, "text": f"{rule} of {candidate}"}
        for rule in rules
        for candidate in ("new", "newer")
    ]
    show_conclusions(manifest(readings=readings), [], [], ["ndcg@10"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["new against old:", *(f"  • {rules[n]} of new" for n in (2, 1, 3))]
    assert lines[4] == "newer against old:"
    assert lines[-1] == "2 more readings: --all prints all, and the report has them"
    show_conclusions(manifest(readings=readings), [], [], ["ndcg@10"], every_reading=True)
    shown = capsys.readouterr().out
    assert shown.count("•") == 8 and "more readings" not in shown


def test_two_runs_without_a_common_query_are_an_error_with_its_reason() -> None:
    empty = row("ndcg_at_10", queries=0, unjudged=0, delta=None)
    with pytest.raises(InputError, match=r"no query counts in both runs, they have no query in common \(x and x\)"):
        require_paired_queries(RunComparison([empty], []), (manifest(), manifest()))
    with pytest.raises(InputError, match=r"no query counts in both runs, 12 queries have too little judged"):
        require_paired_queries(RunComparison([empty | {"unjudged": 12}], []), (manifest(), manifest()))
    require_paired_queries(RunComparison([empty | {"queries": 1}], []), (manifest(), manifest()))


def test_a_reversal_between_runs_is_named_and_so_is_what_else_differs(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = (
        {"ios": SegmentCell(60, 0.8), "web": SegmentCell(40, 0.5)},
        {"ios": SegmentCell(30, 0.82), "web": SegmentCell(70, 0.51)},
    )
    reversed_, plain = split_difference(before, after), split_difference(before, before | {"ios": SegmentCell(60, 0.9)})
    assert reversed_ is not None and plain is not None
    parts = [MixPart("ndcg_at_10", form, "device", s) for form, s in (("macro", reversed_), ("weighted", plain))]
    runs = (manifest(), manifest(dt="2026-11-02", conventions={"ties": "error"}))
    show_two_runs(RunComparison([row("ndcg_at_10")], parts), runs, ("new", "new"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == (
        "ndcg@10, mean over queries: -0.0770 = +0.0145 within each device -0.0915 from another mix of device; "
        "a reversal: every device moved against the whole"
    )
    assert (
        lines[-1] == "ndcg@10, mean by traffic: +0.0600 = +0.0600 within each device +0.0000 from another mix of device"
    )
    assert "! the runs differ: convention ties: not known → error" in lines


def test_systems_are_compared_with_the_baseline_or_each_with_each() -> None:
    systems = ("a", "b", "c")
    assert list_pairs(config(), systems) == ()
    assert list_pairs(config(compare={"baseline": "b"}), systems) == (("b", "a"), ("b", "c"))
    every = config(compare={"baseline": "b", "pairs": "all"})
    assert list_pairs(every, systems) == (("b", "a"), ("b", "c"), ("a", "c"))
    assert list_pairs(config(compare={"pairs": "all"}), systems) == (("a", "b"), ("a", "c"), ("b", "c"))


def test_the_family_has_the_metrics_of_the_gate_and_no_list_similarity() -> None:
    metrics, gate = ["ndcg@10", "recall@10", "rbo"], [{"metric": "recall@10", "drop": 0.1}]
    named = {"metrics": metrics, "compare": {"baseline": "old"}}
    assert select_test_family(config(**named)) == ["ndcg_at_10", "recall_at_10"]
    assert select_test_family(config(**named, gate=gate)) == ["recall_at_10"]
    all_of_them = named | {"compare": {"baseline": "old", "family": "all"}}
    assert select_test_family(config(**all_of_them, gate=gate)) == ["ndcg_at_10", "recall_at_10"]


def test_lists_are_compared_with_the_baseline_where_no_earlier_stage_is_named() -> None:
    assert config(metrics=["rbo"], compare={"baseline": "old"}).earlier_system == "old"
    assert config(metrics=["rbo"], compare={"baseline": "old"}, earlier="first").earlier_system == "first"
    with pytest.raises(ValueError, match="the metric rbo needs earlier"):
        config(metrics=["rbo"])
