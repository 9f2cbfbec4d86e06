"""Tables fit the terminal: 14 metrics of 5 systems at any width, with every number in whole."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

from jobs.support import terminal
from jobs.support.conclusions import show_answers, show_conclusions, show_means
from jobs.support.grids import Grid, choose_columns, fit_grid, show_grid
from pipelines.comparison.answers import answer_comparisons
from pipelines.warehouse.runs import Manifest
from udfs.registry import parse_metric

METRICS = (
    "ndcg@10", "ndcg@20", "ndcg(gain=linear)@10", "recall@10", "recall@50", "recall@100", "mrr", "map", "precision@5",
    "precision@10", "hit@3", "err@10", "rbp(p=0.95)", "q_measure",
)  # fmt: skip
SYSTEMS = ("hybrid", "bm25", "neural", "a-reranker-with-a-long-name-of-its-own", "pruned")


def build_run() -> tuple[Manifest, list[dict[str, Any]], list[dict[str, Any]]]:
    """A run of all systems against bm25; no two of its numbers are the same."""
    text = dict.fromkeys(("run", "key", "status", "committed_at", "config_hash", "code", "spark"), "x")
    config = {"metrics": list(METRICS), "compare": {"baseline": "bm25"}}
    manifest = Manifest(
        **text, dt="2026-11-01", seconds={}, config=config, inputs={}, systems=SYSTEMS, conventions={}, tables={}
    )
    keys = [parse_metric(name).key for name in METRICS]
    means = [
        {"system": s, "metric": k, "macro": 0.3 + 0.0101 * m + 0.1003 * n, "queries": 1234, "skipped": 5}
        for n, s in enumerate(SYSTEMS)
        for m, k in enumerate(keys)
    ]
    compared = [
        {
            "baseline": "bm25", "candidate": s, "segment": "all", "metric": k, "delta": 0.0101 * m + 0.1003 * (n - 1),
            "delta_low": 0.0101 * m + 0.1003 * (n - 1) - 0.0049, "delta_high": 0.0101 * m + 0.1003 * (n - 1) + 0.0049,
            "relative": 0.01 * n, "p_value": 0.0004, "p_randomisation": 0.001, "p_bootstrap": 0.002, "unjudged": 0,
            "p_adjusted": 0.0008, "significant": True, "wins": 700, "ties": 334, "losses": 200, "queries": 1234,
            "detectable_delta": 0.0123, "kept_traffic": 1.0,
        }
        for n, s in enumerate(SYSTEMS)
        if s != "bm25"
        for m, k in enumerate(keys)
    ]  # fmt: skip
    return manifest, means, compared


def print_run(width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    written = io.StringIO()
    monkeypatch.setattr(terminal, "open_console", lambda **_: Console(file=written, width=width, highlight=False))
    manifest, means, compared = build_run()
    show_means(manifest, means, compared, METRICS)
    show_conclusions(manifest, compared, [], METRICS)
    return written.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200, 10_000])
def test_every_number_is_shown_in_whole_and_no_line_is_too_long(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = print_run(width, monkeypatch)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    _, means, compared = build_run()
    assert {f"{row['macro']:.4f}" for row in means} <= set(re.findall(r"(?<![\d.+-])0\.\d{4}(?!\d)", shown))
    for row in compared:
        assert f"[{row['delta_low']:+.4f}, {row['delta_high']:+.4f}]" in shown
    words = set(shown.split())
    assert set(METRICS) <= words and ".0008*" in words


def test_a_wide_terminal_has_a_line_per_system_and_a_narrow_one_a_line_per_metric(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide, narrow = (print_run(width, monkeypatch).split("− bm25")[0] for width in (240, 80))
    lines = [line.split() for line in wide.splitlines() if line.count("0.") == 14]
    assert [words[0] for words in lines] == ["bm25", "pruned", "a-reranker-with-a-long-n", "neural", "hybrid"]
    assert any(line.split()[:1] == ["ndcg@20"] and line.count("0.") == 5 for line in narrow.splitlines())


def test_the_baseline_is_first_and_marked_and_candidates_follow_by_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = print_run(10_000, monkeypatch)
    pairs = re.findall(r"^(\S+) − bm25, paired by query", shown, re.MULTILINE)
    assert pairs == ["pruned", "a-reranker-with-a-long-name-of-its-own", "neural", "hybrid"]
    assert re.findall(r"^ ([a-z]\S*(?: \(baseline\))?)  +0\.", shown, re.MULTILINE)[0] == "bm25 (baseline)"


def test_means_over_other_queries_are_marked_and_have_their_number(capsys: pytest.CaptureFixture[str]) -> None:
    manifest, means, compared = build_run()
    for row in means:
        if row["system"] == "neural" and row["metric"] == "recall_at_10":
            row["queries"] = 109
    show_means(manifest, means, compared, ["ndcg@10", "recall@10"])
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if "neural" in line)
    assert line.split() == ["neural", "0.5006", "0.5309†", "(n=109)", "1,234", "5"]
    assert "† over different queries from bm25's" in shown and shown.count("†") == 2
    show_means(*build_run(), ["ndcg@10", "recall@10"])
    assert "†" not in capsys.readouterr().out


def test_a_grid_is_turned_before_it_is_split_and_split_where_it_must_be() -> None:
    grid = Grid("t", "system", ["a", "b"], [f"metric{n}" for n in range(9)], [["0.1234"] * 9] * 2, across="metric")
    assert fit_grid(grid, 200) == [grid]
    (turned,) = fit_grid(grid, 40)
    assert (turned.corner, list(turned.headings), len(turned.names)) == ("metric", ["a", "b"], 9)
    parts = fit_grid(turned, 20)
    assert [list(part.headings) for part in parts] == [["a"], ["b"]]
    assert fit_grid(Grid("t", "c", [], ["h"], []), 80) == []


def test_columns_are_left_out_in_their_order() -> None:
    widths = {"a": 10, "b": 10, "c": 10}
    assert choose_columns(widths, ["b", "a"], 40) == ["a", "b", "c"]
    assert choose_columns(widths, ["b", "a"], 30) == ["a", "c"]
    assert choose_columns(widths, ["b", "a"], 5) == ["c"]


def test_the_verdict_on_each_candidate_is_printed_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    manifest, _, compared = build_run()
    show_answers(answer_comparisons(manifest, compared))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9 and not lines[-1]
    assert lines[0] == "✓ pruned beats bm25: ndcg@10 +0.3009 (95 % CI +0.2960 to +0.3058) on 1,234 queries."
    assert lines[1] == "  → 200 queries got worse: look at the largest losses in query_changes, then try it online."
    assert lines[6] == "✗ hybrid is worse than bm25: ndcg@10 -0.1003 (95 % CI -0.1052 to -0.0954) on 1,234 queries."


@pytest.mark.parametrize("turned", [False, True])
def test_a_name_from_the_data_cannot_begin_a_line(turned: bool) -> None:
    grid = Grid("t", "system", ["a\nneural   0.9999"], ["mean\nof all"], [["0.1234"]], fold_names=True)
    written = io.StringIO()
    show_grid(Console(file=written, width=80), grid.turn() if turned else grid)
    assert "a\\u000aneural" in written.getvalue()
    assert not re.search(r"^ *neural", written.getvalue(), re.MULTILINE)
    assert ("mean of all" in written.getvalue()) == turned
