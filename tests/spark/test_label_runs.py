"""Labels as part of a run: built from a log, published, reused and explained."""

import datetime as dt
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.evaluate import require_gate
from jobs.explain import command as explain
from jobs.propensity import command as propensity
from jobs.support.labelling import describe_labelling
from pipelines.comparison.gate import ABSOLUTE_WARNING
from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.label import label
from pipelines.plan import Outcome
from pipelines.simulation.settings import SimulationSettings, build_simulation_settings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.checkpoint import keep_in_memory
from pipelines.warehouse.tables import read_table
from schemas.errors import ConfigurationError, GateError, InputError

DAY = dt.date(2026, 1, 11)
TABLES = ("impressions", "interactions", "rankings")


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    log = simulate(spark, SimulationSettings(pages=2_000, queries=150, zipf=0.8, documents=12), keep=keep_in_memory)
    for name in TABLES:
        getattr(log, name).write.parquet(str(folder / name))
    return folder


def build_config(folder: Path, *inputs: str, **values: object) -> Config:
    sources = {name: {"path": str(folder / name)} for name in inputs}
    fixed = {"inputs": sources, "metrics": ["ndcg@10"], "checks": "off", "warehouse": str(folder / "warehouse")}
    return Config.model_validate(fixed | values)


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, folder: Path) -> Outcome:
    return evaluate(spark, build_config(folder, "impressions", "interactions", checks="full"), DAY)


def test_a_log_alone_evaluates_the_systems_that_served_it(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    manifest = outcome.manifest
    assert manifest.systems == ("older", "production", "trial")
    means = {row["metric"] for row in read_table(spark, str(folder / "warehouse"), "segment_metrics").collect()}
    assert means == {"ndcg_at_10", "dcg_at_10", "judged_at_10", "unseen_at_10"}
    assert manifest.conventions["unjudged"] == "posterior"
    published = ("labels", "propensities", "denoise_funnel", "quarantine", "query_metrics", "segment_metrics")
    assert all(manifest.tables[name].rows > 0 for name in (*published, "label_prior", "label_posteriors"))
    assert set(manifest.checks["tables"]) >= {"impressions", "interactions", "labels", "propensities", "query_metrics"}
    assert {of["check"] for of in manifest.checks["failing"]} <= {"unique_key"}, "redelivered events, and nothing else"
    lines = describe_labelling(manifest.labels)
    assert any(line.startswith("clicks:") for line in lines)
    assert any("connected" in line or "perplexity" in line for line in lines)


def test_labels_of_an_earlier_run_are_reused(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    compare = {"baseline": "production", "goal": "cart", "movers": 0}
    by_date = evaluate(spark, build_config(folder, "rankings", labels_of=DAY.isoformat(), compare=compare), DAY)
    assert "trained_on_the_labels" in {reading["rule"] for reading in by_date.manifest.readings}
    assert by_date.manifest.labels == {"from_run": outcome.manifest.run}
    assert set(by_date.manifest.systems) >= {"better", "worse", "production"}
    assert "labels" not in by_date.manifest.tables
    assert by_date.manifest.conventions["unjudged"] == "cut_then_condense", "published labels have no posterior"
    assert "labels_taken_as_true" in {reading["rule"] for reading in by_date.manifest.readings}
    with pytest.raises(InputError, match="no run or date 'nowhere' has labels"):
        evaluate(spark, build_config(folder, "rankings", labels_of="nowhere"), DAY)


def test_a_small_log_is_undecidable(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    config = build_config(
        folder,
        "rankings",
        labels_of=outcome.manifest.run,
        compare={"baseline": "production", "movers": 0},
        gate=[{"metric": "ndcg@10", "drop": 0.01}],
    )
    manifest = evaluate(spark, config, DAY).manifest
    candidates = set(manifest.systems) - {"production"}
    compared = read_table(spark, config.warehouse, "comparisons", run=manifest.run).where("segment = 'all'")
    kept = {row.candidate: row for row in compared.where("metric = 'ndcg_at_10'").collect()}
    assert kept.keys() == candidates
    readings = {(reading["candidate"], reading["rule"]): reading["text"] for reading in manifest.readings}
    for verdict in manifest.gate:
        row = kept[verdict["candidate"]]
        assert 0 < row.queries < 100 < row.queries + row.unjudged
        assert verdict["verdict"] == row.gate == "undecidable"
        rest = f"{row.queries} queries, fewer than min_queries = 100; {row.unjudged} more have too little judged"
        assert verdict["reason"] == rest
        share = row.queries / (row.queries + row.unjudged)
        text = f"Undecidable from this log: {row.queries} of {row.queries + row.unjudged} queries ({share:.0%}, "
        assert readings[row.candidate, "undecidable_from_this_log"].startswith(text)
        assert "p-values and intervals treat them as true" in readings[row.candidate, "labels_taken_as_true"]
    assert {verdict["candidate"] for verdict in manifest.gate} == candidates
    with pytest.raises(GateError, match="undecidable"):
        require_gate(manifest)

    ways = read_table(spark, config.warehouse, "sensitivity", run=manifest.run).toPandas()
    assert len(ways) == 3 * len(candidates)
    for candidate, rows in ways.set_index("unjudged").groupby("candidate"):
        queries = rows["queries"].to_dict()
        assert queries["cut_then_condense"] == kept[str(candidate)].queries
        assert queries["zero"] == queries["condense"] > queries["cut_then_condense"], "they leave out no query"
        assert (rows.loc[["zero", "condense"], "kept_traffic"] == 1.0).all()


def test_labels_from_behaviour_give_warnings_under_every_convention(
    spark: SparkSession, folder: Path, outcome: Outcome
) -> None:
    config = build_config(
        folder,
        "rankings",
        labels_of=outcome.manifest.run,
        compare={"baseline": "production", "movers": 0},
        gate=[{"metric": "ndcg@10", "at_least": 0.1, "candidate": "better"}],
        conventions={"unjudged": "zero"},
    )
    manifest = evaluate(spark, config, DAY).manifest
    assert [verdict["warning"] for verdict in manifest.gate] == [ABSOLUTE_WARNING]
    assert {"labels_taken_as_true", "trained_on_the_labels"} <= {reading["rule"] for reading in manifest.readings}
    assert "sensitivity" not in manifest.tables, "there is no other rule to stand beside"


def test_labels_can_be_built_alone(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    config = build_config(folder, *TABLES, warehouse=str(folder / "labels alone"))
    alone = label(spark, config, DAY).manifest
    assert set(alone.tables) == {"labels", "propensities", "denoise_funnel", "quarantine"}
    assert alone.tables["labels"].rows == outcome.manifest.tables["labels"].rows
    assert label(spark, config, DAY).reused


def test_a_grade_is_explained_number_by_number(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    row = read_table(spark, str(folder / "warehouse"), "labels", run=outcome.manifest.run).where("grade > 0").first()
    assert row is not None
    place = ["--warehouse", str(folder / "warehouse"), "--run", outcome.manifest.run]
    explanation = CliRunner().invoke(explain, [*place, "--query", row.query_id, "--doc", row.doc_id])
    assert f"{row.query_id} / {row.doc_id}: grade {row.grade}" in explanation.output
    assert f"{row.lift_click:.2f} by clicks" in explanation.output
    curve = CliRunner().invoke(propensity, place)
    assert "   1  1.000 █" in curve.output


def test_inputs_that_do_not_suffice_are_named() -> None:
    with pytest.raises(ValueError, match="rankings and judgments, or a log"):
        Config.model_validate({"inputs": {"rankings": {"path": "r"}}})
    with pytest.raises(ValueError, match="both impressions and interactions"):
        Config.model_validate({"inputs": {"impressions": {"path": "r"}}})


def test_a_simulation_is_configured_by_key_and_value() -> None:
    config = build_simulation_settings({"pages": 10, "seed": None}, ["dirt.crawler=0", "trust=0.3"])
    assert (config.pages, config.seed, config.dirt.crawler, config.trust) == (10, 1, 0.0, 0.3)
    with pytest.raises(ConfigurationError, match="trust"):
        build_simulation_settings({}, ["trust=7"])
