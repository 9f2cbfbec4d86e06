"""Segments of the log: a candidate that is better on desktop and worse on phones, and weights by traffic."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.simulation.settings import SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.tables import read_table

DAY = dt.date(2026, 1, 11)


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of two devices; `split` ranks as the better system on desktop and as the worse one on phones."""
    folder = tmp_path_factory.mktemp("pages")
    settings = SimulationSettings(
        pages=6_000, queries=120, zipf=0.8, documents=12, examination={"desktop": 0.8, "phone": 1.2}
    )
    log = simulate(spark, settings)
    for name in ("impressions", "interactions", "truth_grades"):
        getattr(log, name).write.parquet(str(folder / name))
    devices = {"desktop": "better", "phone": "worse"}
    lists = log.rankings.where(F.col("system").isin("production", *devices.values()))
    of_device = F.create_map(*[F.lit(text) for pair in devices.items() for text in pair])
    by_device = lists.crossJoin(spark.createDataFrame([(device,) for device in devices], "device string"))
    kept = by_device.where((F.col("system") == "production") | (F.col("system") == of_device[F.col("device")]))
    candidate = F.when(F.col("system") == "production", "production").otherwise("split")
    kept.withColumn("system", candidate).write.parquet(str(folder / "rankings"))
    lists.write.parquet(str(folder / "plain"))
    return folder


def run(spark: SparkSession, folder: Path, lists: str, **values: Any) -> dict[str, Any]:
    inputs = {name: {"path": str(folder / name)} for name in ("impressions", "interactions")}
    config = {
        "inputs": inputs | {"rankings": {"path": str(folder / lists)}},
        "metrics": ["ndcg@10"],
        "segments": ["impressions.device"],
        "compare": {"baseline": "production", "sensitivity": False},
        "trained": {"split": "none", "better": "none", "worse": "none"},
        "checks": "off",
        "warehouse": str(folder / f"warehouse-{lists}-{len(values)}"),
    }
    evaluate(spark, Config.model_validate(config | values), DAY)
    names = ("query_metrics", "segment_metrics", "comparisons")
    return {name: read_table(spark, str(config["warehouse"]), name).toPandas() for name in names}


def test_a_candidate_that_is_better_on_desktop_and_worse_on_phones_is_found_as_both(
    spark: SparkSession, folder: Path
) -> None:
    gate = [{"metric": "ndcg@10", "segment": "device", "drop": 0.0}]
    tables = run(spark, folder, "rankings", gate=gate)
    rows = tables["comparisons"].query("metric == 'ndcg_at_10'").set_index(["segment", "value"])
    desktop, phone = rows.loc[("device", "desktop")], rows.loc[("device", "phone")]
    assert desktop["delta_low"] > 0
    assert phone["delta_high"] < 0
    assert (desktop["gate"], phone["gate"]) == ("pass", "fail")
    # Over all queries, each has the list of the device on which it is asked most.
    assert not tables["query_metrics"].duplicated(["system", "query_id"]).any()
    assert phone["delta"] < rows.loc[("all", "all")]["delta"] < desktop["delta"]


def test_a_query_counts_by_its_pages_where_lists_do_not_differ(spark: SparkSession, folder: Path) -> None:
    tables = run(spark, folder, "plain", conventions={"unjudged": "zero"})
    pages = (
        spark.read.parquet(str(folder / "impressions"))
        .groupBy("query_id", "device")
        .agg(F.count_distinct("serp_id").alias("pages"))
        .toPandas()
    )
    metrics = tables["query_metrics"].pivot(index="query_id", columns="system", values="ndcg_at_10").dropna()
    counted = pages[pages["device"] == "phone"].set_index("query_id")["pages"].reindex(metrics.index).dropna()
    delta = (metrics["better"] - metrics["production"]).loc[counted.index]
    mean = np.average(delta, weights=counted)
    rows = tables["comparisons"].query("metric == 'ndcg_at_10' and candidate == 'better'")
    row = rows.set_index(["segment", "value"]).loc[("device", "phone")]
    assert row["delta"] == pytest.approx(mean, abs=1e-12)
    assert row["weighted_delta"] == pytest.approx(mean, abs=1e-12)
    assert row["queries"] == len(counted)
    assert row["wins"] == (delta > 1e-9).sum()
    # The linearised error of a ratio of sums: n/(n - 1) times the squares of w (d - mean), over the total weight.
    residual = counted * (delta - mean)
    n = len(delta)
    stderr = np.sqrt(n / (n - 1) * (residual**2).sum()) / counted.sum()
    assert row["stderr"] == pytest.approx(stderr, rel=1e-9)
    means = tables["segment_metrics"].query("system == 'better' and value == 'phone' and metric == 'ndcg_at_10'")
    of_better = means.iloc[0]
    every = tables["query_metrics"].query("system == 'better'").set_index("query_id")["ndcg_at_10"].dropna()
    weight = pages[pages["device"] == "phone"].set_index("query_id")["pages"].reindex(every.index).dropna()
    assert of_better["macro"] == pytest.approx(np.average(every.loc[weight.index], weights=weight), abs=1e-12)
