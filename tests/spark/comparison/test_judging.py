"""From a published run to a sheet, and from the graded sheet to a corrected comparison."""

from __future__ import annotations

import csv
import datetime as dt
import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.judge import command, draw_sample
from jobs.support.truth import mean_differences
from pipelines.comparison.judging.select import build_sheet
from pipelines.comparison.judging.sheet import write_sheet
from pipelines.config.load import load_run_config
from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.plan import Outcome
from pipelines.simulation.settings import SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.checkpoint import keep_in_memory
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import read_table
from schemas.errors import InputError

DAY = dt.date(2026, 1, 11)
QUERIES, DRAWN = 80, 60
TABLES = ("impressions", "interactions", "rankings", "truth_grades")


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judging")
    log = simulate(spark, SimulationSettings(pages=3_000, queries=QUERIES, zipf=0.5, documents=20), keep=keep_in_memory)
    for name in TABLES:
        getattr(log, name).coalesce(1).write.parquet(str(folder / name))
    return folder


def build_config(folder: Path, **inputs: object) -> Config:
    sources = {name: {"path": str(folder / name)} for name in ("impressions", "interactions", "rankings")}
    return Config.model_validate(
        {
            "inputs": sources | inputs,
            "metrics": ["ndcg@10", "recall@20"],
            "compare": {"baseline": "production", "movers": 0, "sensitivity": False},
            "gate": [{"metric": "ndcg@10", "drop": 0.05, "candidate": "worse"}],
            "trained": {"worse": "none"},
            "checks": "off",
            "warehouse": str(folder / "warehouse"),
        }
    )


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, folder: Path) -> Outcome:
    return evaluate(spark, build_config(folder), DAY)


@pytest.fixture(scope="module")
def sheet(spark: SparkSession, folder: Path, outcome: Outcome) -> Path:
    """The sheet for `better`, written twice from the same draw."""
    manifest = outcome.manifest
    path = folder / "sheet.csv"
    for target in (path, folder / "again.jsonl"):
        sample = draw_sample(Storage(str(folder / "warehouse")), manifest, "better", None, None, DRAWN, seed=3)
        write_sheet(target, build_sheet(spark, manifest, load_run_config(manifest), sample, seed=3))
    return path


def grade(sheet: Path, target: Path, truth: pd.DataFrame, *, skip: int) -> pd.DataFrame:
    """The sheet graded by the truth, without the last grade of the first `skip` queries."""
    rows = pd.read_csv(sheet, dtype=str, keep_default_na=False).drop(columns="grade")
    graded = rows.merge(truth.astype({"grade": str})[["query_id", "doc_id", "grade"]], how="left").fillna("0")
    left_out = graded.groupby("query_id", sort=False).tail(1).index[:skip]
    graded.loc[left_out, "grade"] = ""
    graded.to_csv(target, index=False)
    return graded


def test_the_sheet_has_the_union_of_both_tops_and_its_chances(folder: Path, sheet: Path) -> None:
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query_id", "query", "doc_id", "title", "chance", "grade"]
    assert all(row["grade"] == "" and row["query"] for row in rows), "the log has the query texts"
    again = [json.loads(line) for line in (folder / "again.jsonl").read_text("utf-8").splitlines()]
    assert [(row["query_id"], row["doc_id"], float(row["chance"])) for row in rows] == [
        (row["query_id"], row["doc_id"], row["chance"]) for row in again
    ]
    drawn = {row["query_id"] for row in rows}
    assert len(drawn) == DRAWN
    tops = pd.read_parquet(folder / "rankings").query("rank <= 10 and system in ['production', 'better']")
    expected = tops[tops["query_id"].isin(drawn)][["query_id", "doc_id"]].drop_duplicates()
    assert {(row["query_id"], row["doc_id"]) for row in rows} == set(expected.itertuples(index=False, name=None))
    assert len(rows) == len(expected)
    assert not any(name in sheet.read_text("utf-8") for name in ("production", "better"))


def test_a_graded_sheet_corrects_the_comparison_and_is_no_label(
    spark: SparkSession, folder: Path, outcome: Outcome, sheet: Path
) -> None:
    truth = pd.read_parquet(folder / "truth_grades")
    graded = grade(sheet, folder / "graded.csv", truth, skip=4)
    source = {"path": str(folder / "graded.csv"), "format": "csv"}
    judged = evaluate(spark, build_config(folder, judgments=source), DAY)
    before, after = (
        read_table(spark, str(folder / "warehouse"), "comparisons", run=run.manifest.run).toPandas()
        for run in (outcome, judged)
    )
    one, two = (rows.sort_values(["candidate", "metric"], ignore_index=True)["delta"] for rows in (before, after))
    pd.testing.assert_series_equal(one, two, check_exact=True)
    assert before["delta_corrected"].isna().all()
    corrected = after[after["delta_corrected"].notna()].set_index(["candidate", "metric"])
    # Documents below 10 are not in the sheet, and it was drawn for one candidate.
    assert set(corrected.index) == {("better", "ndcg_at_10"), ("better", "dcg_at_10")}
    row = corrected.to_dict("index")["better", "ndcg_at_10"]
    assert row["judged_queries"] == DRAWN - 4
    assert row["hull"], "nobody vouches for it"
    assert row["corrected_high"] - row["corrected_low"] < 0.7 * (row["delta_high"] - row["delta_low"])
    true = mean_differences(pd.read_parquet(folder / "rankings"), truth, "ndcg@10", "production")["better"]
    assert row["corrected_low"] <= true <= row["corrected_high"]
    labels = read_table(spark, str(folder / "warehouse"), "labels", run=judged.manifest.run)
    assert labels.where("source = 'human'").isEmpty()
    (text,) = (
        reading["text"]
        for reading in judged.manifest.readings
        if reading["rule"] == "judged_queries" and reading["candidate"] == "better"
    )
    assert "56 of 60 drawn queries are judged" in text
    assert "4 are incomplete" in text
    assert len(graded) == len(pd.read_csv(sheet))


def test_chances_without_a_model_are_refused(spark: SparkSession, folder: Path, sheet: Path) -> None:
    grade(sheet, folder / "labels.csv", pd.read_parquet(folder / "truth_grades"), skip=0)
    source = {"path": str(folder / "labels.csv"), "format": "csv"}
    config = build_config(folder, judgments=source)
    inputs = config.inputs.model_copy(update={"impressions": None, "interactions": None})
    with pytest.raises(InputError, match="correct a model, but this run has none"):
        evaluate(spark, config.model_copy(update={"inputs": inputs}), DAY)


def test_a_sheet_is_never_overwritten(folder: Path, sheet: Path) -> None:
    place = ["--warehouse", str(folder / "warehouse"), "--candidate", "better", "--to", str(sheet)]
    outcome = CliRunner().invoke(command, place)
    assert "may contain grades" in str(outcome.exception)
