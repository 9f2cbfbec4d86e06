"""Segments of the log: a candidate that is better on desktop and worse on phones, and weights by traffic."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import assay
from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.simulation.settings import SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.checkpoint import keep_in_memory
from pipelines.warehouse.tables import read_table

DAY = dt.date(2026, 1, 11)


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of two devices; `split` ranks as the better system on desktop and as the worse one on phones."""
    folder = tmp_path_factory.mktemp("pages")
    settings = SimulationSettings(
        pages=6_000,
        queries=120,
        zipf=0.5,
        documents=12,
        examination={"desktop": 0.8, "phone": 1.2},
        qualities={"production": 0.5, "older": 0.25, "trial": 0.7, "better": 0.95, "worse": 0.1},
    )
    log = simulate(spark, settings, keep=keep_in_memory)
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


def count_pages(spark: SparkSession, folder: Path, device: str) -> pd.Series:
    """The pages of every query on a device."""
    shown = spark.read.parquet(str(folder / "impressions")).where(F.col("device") == device)
    pages = shown.groupBy("query_id").agg(F.count_distinct("serp_id").alias("pages"))
    return pages.toPandas().set_index("query_id")["pages"]


def find_true_difference(spark: SparkSession, folder: Path, device: str) -> float:
    """The difference of the lists of a device by the true grades, weighted by pages."""
    lists = spark.read.parquet(str(folder / "rankings")).where(F.col("device") == device).drop("device").toPandas()
    truth = spark.read.parquet(str(folder / "truth_grades")).toPandas()
    metrics: Any = assay.evaluate(lists, truth, metrics=["ndcg@10"]).query_metrics
    wide = metrics.pivot(index="query_id", columns="system", values="ndcg_at_10").dropna()
    pages = count_pages(spark, folder, device).reindex(wide.index).fillna(0)
    return float(np.average(wide["split"] - wide["production"], weights=pages))


def test_a_candidate_that_is_better_on_desktop_and_worse_on_phones_is_found_as_both(
    spark: SparkSession, folder: Path
) -> None:
    gate = [{"metric": "ndcg@10", "segment": "device", "drop": 0.0}]
    tables = run(spark, folder, "rankings", gate=gate)
    rows = tables["comparisons"].query("metric == 'ndcg_at_10'").set_index(["segment", "value"])
    desktop, phone = rows.loc[("device", "desktop")], rows.loc[("device", "phone")]
    shown = rows[["delta", "delta_low", "delta_high", "queries"]].to_string()
    assert desktop["delta_low"] > 0, shown
    assert phone["delta_high"] < 0, shown
    for device, row in (("desktop", desktop), ("phone", phone)):
        assert row["delta_low"] < find_true_difference(spark, folder, device) < row["delta_high"], shown
    assert (desktop["gate"], phone["gate"]) == ("pass", "fail")
    # Over all queries, each has the list of the device on which it is asked most.
    assert not tables["query_metrics"].duplicated(["system", "query_id"]).any()
    assert phone["delta"] < rows.loc[("all", "all")]["delta"] < desktop["delta"]


def test_a_query_counts_by_its_pages_where_lists_do_not_differ(spark: SparkSession, folder: Path) -> None:
    tables = run(spark, folder, "plain", conventions={"unjudged": "zero"})
    pages = count_pages(spark, folder, "phone")
    metrics = tables["query_metrics"].pivot(index="query_id", columns="system", values="ndcg_at_10").dropna()
    counted = pages.reindex(metrics.index).dropna()
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
    weight = pages.reindex(every.index).dropna()
    assert of_better["macro"] == pytest.approx(np.average(every.loc[weight.index], weights=weight), abs=1e-12)
