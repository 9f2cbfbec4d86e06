"""`assay.compare` in memory: pairs of queries, what differs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import assay
from schemas.errors import ConfigurationError, InputError
from tests.unit.assay.test_evaluate import simulate


@pytest.fixture(scope="module")
def results() -> tuple[Any, Any]:
    """The systems of one simulation, each evaluated by itself, on different but overlapping queries."""
    tables = simulate()
    kept = {"old": [f"q{n}" for n in range(50)], "new": [f"q{n}" for n in range(5, 60)]}
    first, second = (
        assay.evaluate(
            tables["rankings"].query("system == @system and query_id in @queries"),
            tables["judgments"].query("query_id in @queries"),
            ["ndcg@5", "recall@5"],
            queries=tables["queries"].query("query_id in @queries"),
            segments=["device"],
        )
        for system, queries in kept.items()
    )
    return first, second


def test_the_difference_is_the_paired_t_test_on_common_queries(results: tuple[Any, Any]) -> None:
    before, after = (each.query_metrics.set_index("query_id")["ndcg_at_5"] for each in results)
    delta = (after - before).dropna()
    expected = stats.ttest_1samp(delta, 0.0)
    low, high = expected.confidence_interval(0.95)
    got = assay.compare(*results)
    row = got.comparisons.set_index(["segment", "value", "metric"]).loc[("all", "all", "ndcg_at_5")]
    assert row["queries"] == len(delta) == 45
    assert (row["delta"], row["delta_low"], row["delta_high"]) == pytest.approx((delta.mean(), low, high), abs=1e-12)
    assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)
    phone = got.comparisons.query("segment == 'device' and value == 'phone' and metric == 'ndcg_at_5'")
    assert phone["queries"].tolist() == [15]
    assert got.systems == ("old", "new")
    assert got.verdict.startswith("new in run ")
    assert "ndcg@5 +" in got.verdict
    assert "<table>" in got._repr_html_()


def test_each_difference_splits_into_change_and_mix(results: tuple[Any, Any]) -> None:
    parts = {(part["metric"], part["form"]): part["split"] for part in assay.compare(*results).parts}
    split = parts["ndcg_at_5", "macro"]
    means = [each.query_metrics["ndcg_at_5"].mean() for each in results]
    assert split["delta"] == pytest.approx(means[1] - means[0], abs=1e-12)
    assert split["within"] + split["mix"] == pytest.approx(split["delta"], abs=1e-12)


def test_runs_of_a_warehouse_are_named(results: tuple[Any, Any], tmp_path: Path) -> None:
    names = [each.publish(tmp_path) for each in results]
    by_name = assay.compare(*names, warehouse=tmp_path)
    assert by_name.comparisons["delta"].tolist() == assay.compare(*results).comparisons["delta"].tolist()
    with pytest.raises(InputError, match="is a run of a warehouse"):
        assay.compare(*names)


def test_what_else_differs_is_said() -> None:
    tables = simulate()
    both = {"rankings": tables["rankings"], "judgments": tables["judgments"]}
    plain = assay.evaluate(**both, metrics=["ndcg@5"])
    zero = assay.evaluate(**both, metrics=["ndcg@5"], conventions={"no_relevant": "zero"})
    got = assay.compare(plain, zero, system="old")
    assert got.differences == ["convention no_relevant: undefined → zero"]
    assert got.verdict.endswith("The runs differ: convention no_relevant: undefined → zero.")
    assert np.all(got.comparisons["delta"] == 0)
    with pytest.raises(ConfigurationError, match=r"has several systems \(system\)"):
        assay.compare(plain, zero)


def test_a_table_is_no_run() -> None:
    with pytest.raises(InputError, match=r"DataFrame is no run: give what assay.evaluate returns"):
        assay.compare(pd.DataFrame({"a": [1]}), "2026-11-01")  # type: ignore[arg-type]
