"""`assay report --compare` and `assay compare` give the same numbers, where they formerly differed."""

import re
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession
from scipy import stats

from pipelines.comparison.two_runs import compare_runs
from pipelines.report.tables import format_interval
from pipelines.report.two_runs import render_two_run_report
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from tests.helpers.published_runs import publish

CONFIG = {
    "metrics": ["ndcg@10"],
    "segments": [["device"]],
    "statistics": {"confidence": 0.9, "cluster": "device"},
    "compare": {"min_judged": 0.7},
}


def read_values(storage: Storage, run: Manifest) -> dict[str, float]:
    rows = ds.dataset(storage.local(run.tables["query_metrics"].path)).to_table().to_pylist()
    return {row["query_id"]: row["ndcg_at_10"] for row in rows if row["system"] == "new"}


def test_under_judged_queries_and_clusters_count_as_in_compare(spark: SparkSession, tmp_path: Path) -> None:
    """In the second run only one query of four has enough judged, and those changed less than the others."""
    enough = [(1.0, 1.0 if at % 8 in (0, 3) else 0.5) for at in range(200)]
    storage, before = publish(tmp_path, config=CONFIG, judged=[(1.0, 1.0)] * 200)
    _, after = publish(tmp_path, date="2026-11-02", run="b-1", lift=0.4, config=CONFIG, judged=enough)
    runs = (before, after)
    comparison = compare_runs(spark, str(tmp_path), runs, ("new", "new"))
    row = next(r for r in comparison.comparisons if (r["segment"], r["metric"]) == ("all", "ndcg_at_10"))
    page = render_two_run_report(spark, storage, runs, "new")
    section = page[page.index('id="difference"') : page.index('id="segments"')]
    interval = format_interval(row["delta_low"], row["delta_high"], "+.4f")
    assert f"{row['delta']:+.4f}<small> {interval}</small>" in section
    assert "Δ [90 % CI]" in section
    assert f"{row['wins']} / {row['ties']} / {row['losses']}" in section
    assert f"new: ndcg@10, {row['queries']} queries" in page[page.index('id="distribution"') :]
    moved = re.findall(r"<tr>", page[page.index('id="movers"') :])
    assert len(moved) - 1 == min(20, row["wins"] + row["losses"])

    # What the report formerly showed: all queries, and an interval that ignores clusters.
    first, second = (read_values(storage, run) for run in runs)
    deltas = {query: second[query] - first[query] for query in first if first[query] is not None}
    every = list(deltas.values())
    counted = [delta for query, delta in deltas.items() if enough[int(query[1:])][1] >= 0.7]
    assert row["queries"] == len(counted) == 50
    assert row["delta"] == pytest.approx(np.mean(counted))
    assert abs(np.mean(every) - row["delta"]) > 0.05
    plain = stats.ttest_1samp(counted, 0).confidence_interval(0.9)
    assert abs((plain.high - plain.low) - (row["delta_high"] - row["delta_low"])) > 0.01
