"""Labels as part of a run: made from a log, published, used again, and explained."""

import datetime as dt
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from pyspark.sql import Row, SparkSession
from scipy import stats

from jobs.evaluate import refuse
from jobs.explain import command as explain
from jobs.label import account
from jobs.propensity import command as propensity
from pipelines.config import Config
from pipelines.evaluate import Outcome, evaluate, label
from pipelines.gate import ABSOLUTE
from pipelines.impute import drawn_behaviour
from pipelines.label_config import GradeSettings
from pipelines.runs import read_table
from pipelines.simulate import simulate
from pipelines.simulation.config import SimulationConfig, simulation_from
from schemas.errors import ConfigurationError, GateError, InputError

DAY = dt.date(2026, 1, 11)
TABLES = ("impressions", "interactions", "rankings")


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("logs")
    log = simulate(spark, SimulationConfig(pages=2_000, queries=150, zipf=0.8, documents=12))
    for name in TABLES:
        getattr(log, name).write.parquet(str(made / name))
    return made


def setting(folder: Path, *inputs: str, **values: object) -> Config:
    given = {name: {"path": str(folder / name)} for name in inputs}
    fixed = {"inputs": given, "metrics": ["ndcg@10"], "checks": "off", "warehouse": str(folder / "warehouse")}
    return Config.model_validate(fixed | values)


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, folder: Path) -> Outcome:
    return evaluate(spark, setting(folder, "impressions", "interactions", checks="full"), DAY)


def test_a_log_alone_evaluates_the_systems_that_served_it(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    manifest = outcome.manifest
    assert manifest.systems == ("older", "production", "trial")
    means = {row["metric"] for row in read_table(spark, str(folder / "warehouse"), "segment_metrics").collect()}
    assert means == {"ndcg_at_10", "judged_at_10"}
    assert manifest.conventions["unjudged"] == "cut_then_condense"
    published = ("labels", "propensities", "denoise_funnel", "quarantine", "query_metrics", "segment_metrics")
    assert all(manifest.tables[name].rows > 0 for name in published)
    assert set(manifest.checks["tables"]) >= {"impressions", "interactions", "labels", "propensities", "query_metrics"}
    assert {of["check"] for of in manifest.checks["failing"]} <= {"unique_key"}, "redelivered events, and nothing else"
    lines = account(manifest.labels)
    assert any(line.startswith("clicks:") for line in lines)
    assert any("connected" in line or "perplexity" in line for line in lines)


def test_labels_of_an_earlier_run_are_used_again(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    compare = {"baseline": "production", "goal": "cart", "movers": 0}
    by_date = evaluate(spark, setting(folder, "rankings", labels_of=DAY.isoformat(), compare=compare), DAY)
    assert "trained_on_the_labels" in {reading["rule"] for reading in by_date.manifest.readings}
    assert by_date.manifest.labels == {"from_run": outcome.manifest.run}
    assert set(by_date.manifest.systems) >= {"better", "worse", "production"}
    assert "labels" not in by_date.manifest.tables
    how = {"label_draws": 2}  # the same again, with labels that are not taken as true
    drawn = evaluate(
        spark, setting(folder, "rankings", labels_of=DAY.isoformat(), compare=compare, statistics=how), DAY
    )
    plain, wider = (_comparisons(spark, folder, run) for run in (by_date, drawn))
    assert [row["delta"] for row in wider] == pytest.approx([row["delta"] for row in plain])
    assert all(w["stderr"] > p["stderr"] for p, w in zip(plain, wider, strict=True) if p["metric"] == "ndcg_at_10")
    assert "labels_taken_as_true" in {reading["rule"] for reading in by_date.manifest.readings}
    assert "labels_taken_as_true" not in {reading["rule"] for reading in drawn.manifest.readings}
    with pytest.raises(InputError, match="no run or date 'nowhere' has labels"):
        evaluate(spark, setting(folder, "rankings", labels_of="nowhere"), DAY)


def _comparisons(spark: SparkSession, folder: Path, run: Outcome) -> list[Row]:
    found = read_table(spark, str(folder / "warehouse"), "comparisons", run=run.manifest.run)
    return found.orderBy("candidate", "metric").collect()


def test_a_grade_is_drawn_from_the_posterior_of_its_relevance(spark: SparkSession) -> None:
    shape, rate, base, n = 8.0, 20.0, 0.3, 4_000
    posterior = stats.gamma(shape, scale=1 / rate)
    low, high = map(float, posterior.ppf([0.05, 0.95]))
    values = (1, low, high, shape / rate, shape / rate / base)
    rows: list[tuple[object, ...]] = [("q", f"d{n}", *values, "behaviour", "graded") for n in range(n)]
    rows += [("q", "bought", *(3, *values[1:]), "behaviour", "promoted_by_purchase")]
    rows += [("q", "judged", *(2, *values[1:]), "human", "judged"), ("q", "rare", None, *values[1:], "behaviour", "x")]
    names = "relevance_low double, relevance_high double, relevance double, lift_click double"
    labels = spark.createDataFrame(
        rows, f"query_id string, doc_id string, grade int, {names}, source string, reason string"
    )
    found = {r["doc_id"]: r["grade"] for r in drawn_behaviour(labels, GradeSettings(), draw=1, seed=0).collect()}
    assert (found.pop("bought"), found.pop("judged"), "rare" in found) == (3.0, 2.0, False)
    share = np.bincount(np.array(list(found.values()), dtype=int), minlength=4) / n
    expected = np.diff([0.0, *posterior.cdf(np.array([1.0, 1.5, 2.5]) * base), 1.0])
    np.testing.assert_allclose(share, expected, atol=4 * 0.5 / np.sqrt(n))
    lifts = drawn_behaviour(labels, GradeSettings(scale="lift"), draw=2, seed=0).where("doc_id LIKE 'd%'")
    mean = lifts.agg({"grade": "avg"}).collect()[0][0]
    assert mean == pytest.approx(shape / rate / base, abs=4 * posterior.std() / base / np.sqrt(n))


def test_what_a_small_log_cannot_decide_is_not_decided(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    config = setting(
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
        said = f"undecidable from this log: {row.queries} of {row.queries + row.unjudged} queries ({share:.0%}, "
        assert readings[row.candidate, "undecidable_from_this_log"].startswith(said)
        assert "p-values and intervals treat them as true" in readings[row.candidate, "labels_taken_as_true"]
    assert {verdict["candidate"] for verdict in manifest.gate} == candidates
    with pytest.raises(GateError, match="undecidable"):
        refuse(manifest)

    ways = read_table(spark, config.warehouse, "sensitivity", run=manifest.run).toPandas()
    assert len(ways) == 3 * len(candidates)
    for candidate, found in ways.set_index("unjudged").groupby("candidate"):
        queries = found["queries"].to_dict()
        assert queries["cut_then_condense"] == kept[str(candidate)].queries
        assert queries["zero"] == queries["condense"] > queries["cut_then_condense"], "they leave out no query"
        assert (found.loc[["zero", "condense"], "kept_traffic"] == 1.0).all()


def test_labels_from_behaviour_are_warned_of_whatever_the_convention(
    spark: SparkSession, folder: Path, outcome: Outcome
) -> None:
    config = setting(
        folder,
        "rankings",
        labels_of=outcome.manifest.run,
        compare={"baseline": "production", "movers": 0},
        gate=[{"metric": "ndcg@10", "at_least": 0.1, "candidate": "better"}],
        conventions={"unjudged": "zero"},
    )
    manifest = evaluate(spark, config, DAY).manifest
    assert [verdict["warning"] for verdict in manifest.gate] == [ABSOLUTE]
    assert {"labels_taken_as_true", "trained_on_the_labels"} <= {reading["rule"] for reading in manifest.readings}
    assert "sensitivity" not in manifest.tables, "there is no other rule to stand beside"


def test_labels_can_be_made_alone(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    config = setting(folder, *TABLES, warehouse=str(folder / "labels alone"))
    alone = label(spark, config, DAY).manifest
    assert set(alone.tables) == {"labels", "propensities", "denoise_funnel", "quarantine"}
    assert alone.tables["labels"].rows == outcome.manifest.tables["labels"].rows
    assert label(spark, config, DAY).found_done


def test_a_grade_is_explained_number_by_number(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    row = read_table(spark, str(folder / "warehouse"), "labels", run=outcome.manifest.run).where("grade > 0").first()
    assert row is not None
    place = ["--warehouse", str(folder / "warehouse"), "--run", outcome.manifest.run]
    told = CliRunner().invoke(explain, [*place, "--query", row.query_id, "--doc", row.doc_id])
    assert f"{row.query_id} / {row.doc_id}: grade {row.grade}" in told.output
    assert f"lift {row.lift_click:.2f} by clicks" in told.output
    drawn = CliRunner().invoke(propensity, place)
    assert "   1  1.000 █" in drawn.output


def test_inputs_that_do_not_suffice_are_named() -> None:
    with pytest.raises(ValueError, match=r"label_draws draws grades by the lift of clicks"):
        Config.model_validate(
            {
                "inputs": {"rankings": {"path": "r"}},
                "labels_of": "2026-11-01",
                "labels": {"grade": {"objective": "cart"}},
                "statistics": {"label_draws": 5},
            }
        )
    with pytest.raises(ValueError, match="rankings and judgments, or a log"):
        Config.model_validate({"inputs": {"rankings": {"path": "r"}}})
    with pytest.raises(ValueError, match="both impressions and interactions"):
        Config.model_validate({"inputs": {"impressions": {"path": "r"}}})


def test_a_simulation_is_told_by_key_and_value() -> None:
    config = simulation_from({"pages": 10, "seed": None}, ["dirt.crawler=0", "trust=0.3"])
    assert (config.pages, config.seed, config.dirt.crawler, config.trust) == (10, 1, 0.0, 0.3)
    with pytest.raises(ConfigurationError, match="trust"):
        simulation_from({}, ["trust=7"])
