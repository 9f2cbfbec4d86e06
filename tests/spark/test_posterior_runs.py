"""Runs that score by posteriors: every query counts, intervals include the error of the labels."""

import datetime as dt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.explain import command as explain
from jobs.support.truth import mean_differences
from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.plan import Outcome
from pipelines.scoring.explain import explain_drawn_metrics
from pipelines.scoring.one_query import read_query
from pipelines.simulation.settings import SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.checkpoint import keep_in_memory
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import read_table
from udfs.conventions import Conventions
from udfs.registry import parse_metrics

DAY = dt.date(2026, 1, 11)
QUERIES = 120
TABLES = ("impressions", "interactions", "rankings", "truth_grades")
VOUCHED = dict.fromkeys(("older", "trial", "equal", "worse"), "none")  # and nobody vouches for better


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("posterior")
    log = simulate(spark, SimulationSettings(pages=6_000, queries=QUERIES, zipf=0.5, documents=20), keep=keep_in_memory)
    for name in TABLES:
        getattr(log, name).write.parquet(str(folder / name))
    return folder


def build_config(folder: Path, **values: object) -> Config:
    sources = {name: {"path": str(folder / name)} for name in ("impressions", "interactions", "rankings")}
    fixed = {
        "inputs": sources,
        "metrics": ["ndcg@10"],
        "compare": {"baseline": "production", "movers": 0, "sensitivity": False},
        "trained": VOUCHED,
        "checks": "off",
        "warehouse": str(folder / "warehouse"),
    }
    return Config.model_validate(fixed | values)


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, folder: Path) -> Outcome:
    return evaluate(spark, build_config(folder), DAY)


def read_rows(spark: SparkSession, folder: Path, run: Outcome, table: str) -> pd.DataFrame:
    rows = read_table(spark, str(folder / "warehouse"), table, run=run.manifest.run).drop("dt", "run").toPandas()
    return rows.sort_values(list(rows.columns), ignore_index=True)


def test_every_query_counts_and_intervals_hold_the_truth(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    compared = read_rows(spark, folder, outcome, "comparisons")
    compared = compared[compared["metric"] == "ndcg_at_10"].set_index("candidate")
    assert (compared["queries"] == QUERIES).all()
    rankings, truth = (pd.read_parquet(folder / name) for name in ("rankings", "truth_grades"))
    true = mean_differences(rankings, truth, "ndcg@10", "production").reindex(compared.index)
    inside = (compared["delta_low"] <= true) & (true <= compared["delta_high"])
    assert inside.sum() >= len(compared) - 1, "five intervals of 95 %"
    assert compared["label_share"].between(0, 1, inclusive="right").all()
    assert compared["hull"].to_dict() == {name: name == "better" for name in compared.index}
    unseen = compared["unseen_weight"].to_dict()
    assert unseen["better"] > unseen["older"]


def test_posteriors_cover_the_pool_and_say_what_they_rest_on(
    spark: SparkSession, folder: Path, outcome: Outcome
) -> None:
    pool = read_rows(spark, folder, outcome, "label_posteriors")
    labels = read_rows(spark, folder, outcome, "labels")
    seen = pool[pool["source"] != "prior"]
    assert len(seen) == len(labels) and set(seen["source"]) == {"behaviour"}
    tops = pd.read_parquet(folder / "rankings").query("rank <= 10")[["query_id", "doc_id"]].drop_duplicates()
    assert len(tops.merge(pool, on=["query_id", "doc_id"])) == len(tops)
    unseen = pool[pool["source"] == "prior"]
    draws = pool["grade_draws"].map(lambda digits: np.array(list(digits), dtype=float))
    assert draws.map(len).unique().tolist() == [30]
    assert pool["grade_mean"].to_numpy() == pytest.approx(draws.map(np.mean).to_numpy())
    assert pool["grade_sd"].to_numpy() == pytest.approx(draws.map(lambda grades: grades.std(ddof=1)).to_numpy())
    assert (unseen["relevance_sd"] / unseen["relevance"]).mean() > (pool["relevance_sd"] / pool["relevance"]).mean()
    lifts = pool.groupby("query_id")["lift"].mean()
    assert lifts.to_numpy() == pytest.approx(1.0), "the base is the mean over the pool"
    prior = read_rows(spark, folder, outcome, "label_prior").query("factor == 'better'")
    effects = dict(zip(prior["level"], prior["effect"], strict=True))
    assert effects["1"] > 0 > effects["11–20"], "what a good ranker puts first is clicked more"


def test_explained_metrics_are_those_of_the_run(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    rows = read_rows(spark, folder, outcome, "query_metrics").set_index(["system", "query_id"])
    query = str(rows["unseen_at_10"].idxmax(axis=0)[1])  # type: ignore[index]
    systems = ("better", "production")
    details = read_query(spark, Storage(str(folder / "warehouse")), outcome.manifest, query, systems)
    specs = parse_metrics(["ndcg@10", "judged@10", "unseen@10"])
    conventions = Conventions.model_validate(outcome.manifest.conventions)
    for system in systems:
        for spec, figure in zip(
            specs, explain_drawn_metrics(details.lists[system], details.drawn, conventions, specs), strict=True
        ):
            assert figure.value == pytest.approx(rows.loc[(system, query), spec.key], rel=1e-12, abs=1e-15), spec.name
    place = ["--warehouse", str(folder / "warehouse"), "--run", outcome.manifest.run]
    shown = CliRunner().invoke(explain, [*place, "--query", query]).output
    assert shown.count("  posterior, from") == len(details.drawn)
    assert shown.count("its posterior is the prior") == sum(label.source == "prior" for label in details.drawn.values())
