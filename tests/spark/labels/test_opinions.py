"""Opinions on Spark: from the input to the factors of the prior."""

import datetime as dt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.labels.opinions import choose_scales
from pipelines.simulation.settings import SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.checkpoint import keep_in_memory
from pipelines.warehouse.tables import read_table
from schemas.errors import InputError

DAY = dt.date(2026, 1, 11)


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opinions")
    log = simulate(spark, SimulationSettings(pages=4_000, queries=80, zipf=0.5, documents=20), keep=keep_in_memory)
    for name in ("impressions", "interactions", "rankings"):
        getattr(log, name).write.parquet(str(folder / name))
    truth = log.truth_grades.toPandas()
    opinions = pd.DataFrame(
        {
            "query_id": truth["query_id"],
            "doc_id": truth["doc_id"],
            "verdict": np.where(truth["grade"] >= 2, "good", "bad"),
            "noise": np.random.default_rng(1).normal(size=len(truth)),
        }
    )
    opinions.loc[:9, "query_id"] = None
    opinions.loc[10:19, "noise"] = np.inf
    opinions.to_parquet(folder / "opinions.parquet")
    return folder


def build_config(folder: Path, **labels: object) -> Config:
    names = ("impressions", "interactions", "rankings")
    sources = {name: {"path": str(folder / name)} for name in names}
    return Config.model_validate(
        {
            "inputs": sources | {"opinions": {"path": str(folder / "opinions.parquet")}},
            "metrics": ["ndcg@10"],
            "compare": {"baseline": "production", "movers": 0, "sensitivity": False},
            "trained": dict.fromkeys(("older", "trial", "better", "equal", "worse"), "none"),
            "labels": labels,
            "checks": "off",
            "warehouse": str(folder / "warehouse"),
        }
    )


def test_opinions_are_weighed_by_clicks_and_reported(spark: SparkSession, folder: Path) -> None:
    manifest = evaluate(spark, build_config(folder), DAY).manifest
    prior = read_table(spark, str(folder / "warehouse"), "label_prior", run=manifest.run).toPandas()
    effects = prior[prior["kind"] == "opinion"].set_index(["factor", "level"])["effect"]
    verdict, noise = effects["opinions.verdict"], effects["opinions.noise"]
    assert set(verdict.index) == {"bad", "good", "(none)"}, "rows without a query are not used"
    assert verdict["good"] - verdict["bad"] > 0.5
    assert len(noise) == 9 and noise.abs().max() < verdict["good"] - verdict["bad"], "eight bins, and those without"
    gains = {tuple(gain["columns"]): gain for gain in manifest.labels["opinions"]}
    every, single = gains["verdict", "noise"], gains[("noise",)]
    assert every["narrowing"] > 0.05 > single["narrowing"], "noise makes labels wider, if anything"
    assert every["covered"] > 0.9
    assert manifest.inputs["opinions"]["rejected"] == {"noise: not a finite number": 10, "query_id: empty": 10}
    assert any(reading["rule"] == "opinions_narrow_labels" for reading in manifest.readings)


def test_an_unknown_opinion_is_refused_with_those_there_are(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(InputError, match="opinions has no column 'llm'") as refused:
        evaluate(spark, build_config(folder, opinions=["llm"]), DAY)
    assert "noise, verdict" in refused.value.hint


def test_scales_do_not_depend_on_partitions(spark: SparkSession) -> None:
    number = (F.xxhash64("id", F.lit(7)) % 100_000) / 1000
    pool = spark.range(50_000).select(
        F.col("id").cast("string").alias("query_id"),
        F.lit("d").alias("doc_id"),
        number.cast("string").alias("opinion_0"),
        F.when(F.col("id") % 5 == 0, F.concat(F.lit("kind "), F.col("id") % 40)).alias("opinion_1"),
    )
    scales = [choose_scales(pool.repartition(parts, "query_id"), ["score", "kind"]) for parts in (1, 7)]
    assert scales[0] == scales[1]
    score, kind = scales[0]
    assert score.edges is not None and len(score.edges) == 7, "text of numbers is a number"
    assert score.edges == pytest.approx([-75, -50, -25, 0, 25, 50, 75], abs=2)
    assert set(kind.categories) == {f"kind {number}" for number in range(0, 40, 5)} | {"(other)"}
