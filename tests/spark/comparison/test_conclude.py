"""From query metrics to conclusions, in Spark: segments, comparisons, movers, verdicts, and runs compared."""

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.comparison.estimate import estimate_metrics
from pipelines.comparison.movers import find_movers
from pipelines.comparison.segments import add_bands, limit_segment_values
from pipelines.comparison.settings import BandSettings
from pipelines.comparison.two_runs import compare_runs
from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import read_table
from schemas.errors import ConfigurationError, DataQualityError
from udfs.statistics.plan import Plan

DAY = dt.date(2026, 11, 1)
QUERIES = 24
PLAN = Plan(
    systems=("a", "b"),
    metrics=("m",),
    segments=(("device",),),
    pairs=(("a", "b"),),
    judged=(None,),
    bootstrap=100,
    percentiles=True,
    randomisation=100,
)


def setting(folder: Path, *, worse: tuple[int, ...] = (), weight: int = 1, **changes: object) -> Config:
    """Three documents per query, d0 the only good one: `old` has it second, `new` first but for `worse` queries."""
    new = [("d1", "d2", "d0") if q in worse else ("d0", "d1", "d2") for q in range(QUERIES)]
    lists = {"old": [("d1", "d0", "d2")] * QUERIES, "new": new}
    files = {
        "rankings": "system,query_id,doc_id,rank\n"
        + "".join(
            f"{system},q{q},{doc},{rank}\n"
            for system, ranked in lists.items()
            for q, docs in enumerate(ranked)
            for rank, doc in enumerate(docs, 1)
        ),
        "judgments": "query_id,doc_id,grade\n" + "".join(f"q{q},d0,1\nq{q},d1,0\n" for q in range(QUERIES)),
        "queries": "query_id,weight,device\n"
        + "".join(f"q{q},{weight if q % 3 else 1},{'ios' if q % 3 else 'web'}\n" for q in range(QUERIES)),
    }
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    values: dict[str, object] = {
        "inputs": {name: {"path": str(folder / f"{name}.csv"), "format": "csv"} for name in files},
        "metrics": ["mrr@3", "recall@2"],
        "segments": ["device", "relevant_band"],
        "compare": {"baseline": "old", "movers": 2},
        "gate": [{"metric": "mrr@3", "superiority": True, "min_queries": 10}],
        "checks": "off",
        "warehouse": str(folder.parent / "warehouse"),
    }
    return Config.model_validate(values | changes)


@pytest.fixture(scope="module")
def published_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Manifest]:
    """A run in which `new` is worse for two of the queries, for tests that only read it."""
    folder = tmp_path_factory.mktemp("made") / "data"
    config = setting(folder, worse=(1, 2), metrics=["mrr@3", "recall@2", "ndcg@3", "rbo"])
    return config, evaluate(spark, config, DAY).manifest


def rows(table: DataFrame, *keys: str) -> dict[tuple[object, ...], Any]:
    return {tuple(row[key] for key in keys): row for row in table.collect()}


def query_metrics(spark: SparkSession, n: int = 40) -> DataFrame:
    random = np.random.default_rng(1)
    values = [
        (system, f"q{q}", float(q % 5 + 1), ("ios", "web", None)[q % 3], f"c{q % 8}", float(random.random()))
        for q in range(n)
        for system in "ab"
    ]
    return spark.createDataFrame(
        values, "system string, query_id string, weight double, device string, intent string, m double"
    )


def test_a_run_concludes_which_system_is_better_where_and_why(
    spark: SparkSession, published_run: tuple[Config, Manifest]
) -> None:
    config, manifest = published_run

    def published(name: str, *keys: str) -> dict[tuple[object, ...], Any]:
        return rows(read_table(spark, config.warehouse, name, run=manifest.run), *keys)

    averages = published("segment_metrics", "system", "segment", "value", "metric")
    assert averages["old", "all", "all", "mrr_at_3"]["macro"] == 0.5
    assert averages["old", "all", "all", "mrr_at_3"]["macro_low"] == 0.5
    assert averages["new", "all", "all", "recall_at_2"]["micro"] == pytest.approx(22 / 24)
    assert averages["new", "relevant_band", "1", "mrr_at_3"]["queries"] == QUERIES
    alike = averages["new", "all", "all", "rbo"]["macro"]  # with the lists of the baseline: .9, or .955 where worse
    assert alike == pytest.approx((22 * 0.9 + 2 * 0.955) / 24)
    compared = published("comparisons", "segment", "value", "metric")
    whole = compared["all", "all", "mrr_at_3"]
    assert (whole["wins"], whole["ties"], whole["losses"]) == (22, 0, 2)
    assert whole["delta"] == pytest.approx((22 * 0.5 - 2 / 6) / 24)
    assert (whole["gate"], whole["condition"], whole["significant"]) == ("pass", "mrr@3 better than baseline", True)
    # the family is the gate's metric in every segment: all, two devices and one band
    assert whole["p_adjusted"] >= whole["p_value"]
    assert compared["all", "all", "recall_at_2"]["p_adjusted"] is None
    moved = published("query_changes", "direction", "place")
    assert set(moved) == {("gain", 1), ("gain", 2), ("loss", 1), ("loss", 2)}
    assert moved["loss", 1]["query_id"] == "q1"
    assert moved["loss", 1]["moved"] == "d0 (1) 2 → 3; d2 (?) 3 → 2"
    assert moved["gain", 1]["moved"] == "d0 (1) 2 → 1; d1 (0) 1 → 2"
    lists = [json.loads(moved["gain", 1][f"{side}_top"]) for side in ("baseline", "candidate")]
    assert lists[0][:2] == [{"doc_id": "d1", "grade": 0.0}, {"doc_id": "d0", "grade": 1.0}]
    assert [entry["doc_id"] for entry in lists[1]] == ["d0", "d1", "d2"]
    assert "grade" not in lists[1][2]  # nobody judged it
    assert [verdict["verdict"] for verdict in manifest.gate] == ["pass"]
    assert [reading["rule"] for reading in manifest.readings] == ["recall_is_a_hit_rate"]


def test_a_query_that_does_not_count_is_no_mover(spark: SparkSession) -> None:
    # Too little of b's list for q1 is judged, q3 is a tie, and that b found nothing for q4 is known.
    values = {"q1": (0.1, 0.9, 0.5), "q2": (0.1, 0.2, 0.9), "q3": (0.3, 0.3 + 1e-12, 0.9), "q4": (0.8, 0.0, None)}
    table = spark.createDataFrame(
        [("a", query, 1.0, 5, old, 0.9) for query, (old, _, _) in values.items()]
        + [("b", query, 1.0, 0 if query == "q4" else 5, new, judged) for query, (_, new, judged) in values.items()],
        "system string, query_id string, weight double, retrieved int, m double, judged double",
    )
    plan = Plan(systems=("a", "b"), metrics=("m",), pairs=(("a", "b"),), judged=("judged",), min_judged=0.7)
    movers = find_movers(table, plan=plan, keys=["m"], most=5).orderBy("query_id").collect()
    assert [(row["query_id"], row["direction"]) for row in movers] == [("q2", "gain"), ("q4", "loss")]


def test_a_comparison_is_shown_by_every_way_to_count_the_unjudged(spark: SparkSession, tmp_path: Path) -> None:
    config = setting(
        tmp_path / "data",
        metrics=["mrr@2"],
        segments=[],
        gate=[{"metric": "mrr@2", "superiority": True, "min_queries": 10}],
        conventions={"unjudged": "cut_then_condense"},
    )
    # Nobody judged d2, which `new` puts first: before the good d0 on 18 queries, before d1 on 6.
    new = [("d2", "d0", "d1") if q < 18 else ("d2", "d1", "d0") for q in range(QUERIES)]
    lists = {"old": [("d1", "d0", "d2")] * QUERIES, "new": new}
    lines = [
        f"{system},q{q},{doc},{rank}\n"
        for system, ranked in lists.items()
        for q, docs in enumerate(ranked)
        for rank, doc in enumerate(docs, 1)
    ]
    (tmp_path / "data" / "rankings.csv").write_text("system,query_id,doc_id,rank\n" + "".join(lines), encoding="utf-8")
    manifest = evaluate(spark, config, DAY).manifest
    by_rule = rows(read_table(spark, config.warehouse, "sensitivity"), "metric", "unjudged")
    deltas = {unjudged: row["delta"] for (_, unjudged), row in by_rule.items()}
    assert deltas == pytest.approx({"cut_then_condense": 0.25, "zero": -0.125, "condense": 0.375})
    assert {unjudged: row["gate"] for (_, unjudged), row in by_rule.items()} == {
        "cut_then_condense": "pass", "zero": "fail", "condense": "pass",
    }  # fmt: skip
    assert {row["queries"] for row in by_rule.values()} == {QUERIES}
    text = {reading["rule"]: reading["text"] for reading in manifest.readings}["rests_on_the_unjudged"]
    assert "mrr@2 differs by +0.2500" in text and "(gate: pass)" in text
    assert "by -0.1250 [" in text and "with them counted as 0, and the gate would say fail." in text
    assert "them taken out before the cut" not in text, "that way the answer is the same"
    silent = config.model_copy(update={"compare": config.compare.model_copy(update={"sensitivity": False})})
    assert "sensitivity" not in evaluate(spark, silent, DAY).manifest.tables


def test_uncertain_labels_widen_what_is_said_of_a_difference(
    spark: SparkSession, published_run: tuple[Config, Manifest], tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    config = setting(
        folder, worse=(1, 2), metrics=["ndcg@3"], gate=[], segments=["device"], statistics={"label_draws": 3}
    )
    lines = "".join(f"q{q},d0,1,0.5\nq{q},d1,0,0.5\n" for q in range(QUERIES))
    (folder / "judgments.csv").write_text(f"query_id,doc_id,grade,grade_sd\n{lines}", encoding="utf-8")
    evaluate(spark, config, DAY)
    places = (published_run[0].warehouse, config.warehouse)
    before, after = (rows(read_table(spark, w, "comparisons"), "metric", "segment", "value") for w in places)
    for key in (("ndcg_at_3", "all", "all"), ("ndcg_at_3", "device", "ios")):
        assert after[key]["delta"] == pytest.approx(before[key]["delta"])
        assert after[key]["stderr"] > before[key]["stderr"]
        assert after[key]["degrees"] < before[key]["degrees"]
        assert after[key]["relative_stderr"] > before[key]["relative_stderr"]
        assert 0 < after[key]["label_share"] < 1 and before[key]["label_share"] is None
    assert "draws" not in read_table(spark, config.warehouse, "query_metrics").columns


def test_an_unknown_baseline_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"compare\.baseline.*did you mean 'old'"):
        evaluate(spark, setting(tmp_path / "data", compare={"baseline": "odl"}), DAY)


def test_neither_partitions_nor_order_change_an_estimate(spark: SparkSession) -> None:
    scored = query_metrics(spark).toPandas()
    noise = scored.m.to_numpy()[:, None] + np.sin(np.outer(scored.m, np.arange(1, 10))) / 20
    table = spark.createDataFrame(scored.assign(draws=[row.tobytes() for row in noise.astype(np.float32)]))
    sets = (("posterior", 4), ("main_effects", 1), ("own_factor_removed", 4))
    plan = replace(PLAN, draw_sets=sets, draw_metrics=("m",), not_vouched=("b",))
    answers = [
        rows(estimate_metrics(cut, plan=plan), "baseline", "candidate", "segment", "value")
        for cut in (table.coalesce(1), table.repartition(5), table.orderBy("m").repartition(3, "m"))
    ]
    assert 0 < answers[0]["a", "b", "all", "all"]["label_share"] < 1
    for other in answers[1:]:
        assert other.keys() == answers[0].keys()
        for key, row in answers[0].items():
            values = other[key].asDict()
            assert values == {
                name: pytest.approx(value, rel=1e-10, abs=1e-12) if isinstance(value, float) else value
                for name, value in row.asDict().items()
            }


def test_clusters_are_brought_together_wherever_they_lie(spark: SparkSession) -> None:
    table = query_metrics(spark).repartition(5)
    row = rows(
        estimate_metrics(table, plan=replace(PLAN, clustered=True), cluster="intent"), "baseline", "segment", "value"
    )
    assert row["a", "all", "all"]["degrees"] == 7.0
    assert row["a", "all", "all"]["queries"] == 40


def test_traffic_bands_end_where_their_share_is_reached(spark: SparkSession) -> None:
    weights = [100.0, 60.0, 20.0, 10.0, 5.0, 5.0]
    table = spark.createDataFrame(
        [("s", f"q{place}", weight, 1) for place, weight in enumerate(weights)],
        "system string, query_id string, weight double, relevant int",
    )
    banded = add_bands(table, bands=BandSettings(), columns=["traffic_band", "relevant_band"])
    bands = rows(banded, "query_id")
    assert [bands[f"q{place}",]["traffic_band"] for place in range(6)] == [
        "head", "torso", "torso", "tail", "tail", "tail",
    ]  # fmt: skip
    assert bands["q0",]["relevant_band"] == "1"


def test_rounding_does_not_move_the_end_of_a_band(spark: SparkSession) -> None:
    weights = [0.3, 0.2, 0.1]  # half of their sum is 0.3, but not to a computer
    values = [("s", f"q{place}", weight) for place, weight in enumerate(weights)]
    table = spark.createDataFrame(values, "system string, query_id string, weight double")
    bands = rows(add_bands(table, bands=BandSettings(), columns=["traffic_band"]), "query_id")
    assert [bands[f"q{place}",]["traffic_band"] for place in range(3)] == ["head", "torso", "torso"]


def test_a_segment_with_many_values_is_refused_or_capped(spark: SparkSession) -> None:
    many = spark.range(150_000, numPartitions=2)
    rare = F.when(F.col("id") < 135_000, (F.col("id") % 10).cast("string")).otherwise(F.col("id").cast("string"))
    table = many.select(F.col("id").cast("string").alias("each"), rare.alias("mostly"), F.lit("x").alias("device"))
    message = (
        r"the segment 'each' has about [\d,]{7,} values, more than statistics\.max_values = 1,000: choose a coarser"
    )
    with pytest.raises(DataQualityError, match=message):
        limit_segment_values(table, segments=[("device",), ("each",)], limit=1000, many="refuse")
    with pytest.raises(DataQualityError, match=r"'each / device' has about .*: combine coarser columns"):
        limit_segment_values(table, segments=[("each", "device")], limit=1000, many="other")
    # once the column is capped, its combinations are few
    capped = limit_segment_values(table, segments=[("mostly",), ("mostly", "device")], limit=20, many="other")
    sizes = {row["mostly"]: row["count"] for row in capped.groupBy("mostly").count().collect()}
    assert len(sizes) == 21
    assert [sizes[str(value)] for value in range(10)] == [13_500] * 10
    assert sizes["(other)"] == 15_000 - 10


def test_two_runs_are_paired_by_query_and_split_by_segment(
    spark: SparkSession, published_run: tuple[Config, Manifest], tmp_path: Path
) -> None:
    before = published_run[1]
    later = setting(tmp_path / "data", weight=5, warehouse=published_run[0].warehouse)
    after = evaluate(spark, later, DAY.replace(day=2)).manifest  # the best for all queries, and more traffic from ios
    result = compare_runs(spark, later.warehouse, (before, after), ("new", "new"))
    whole = next(r for r in result.comparisons if (r["segment"], r["metric"]) == ("all", "mrr_at_3"))
    assert (whole["wins"], whole["ties"], whole["queries"]) == (2, 22, 24)
    assert whole["delta"] == pytest.approx(2 / 24 * 2 / 3)
    parts = {(part.metric, part.form, part.segment): part.split for part in result.parts}
    macro, weighted = parts["mrr_at_3", "macro", "device"], parts["mrr_at_3", "weighted", "device"]
    assert [macro.delta, macro.mix] == pytest.approx([whole["delta"], 0.0])
    ios = (14 + 2 / 3) / 16  # of 16 queries, which were 2/3 of the traffic and are 10/11 of it
    assert weighted.delta == pytest.approx(1 - (22 + 2 / 3) / 24)
    assert weighted.mix == pytest.approx((10 / 11 - 2 / 3) * (ios + 1) / 2 + (1 / 11 - 1 / 3) * 1.0)


def test_runs_are_compared_as_each_of_them_was_made(spark: SparkSession, tmp_path: Path) -> None:
    """Under-judged queries, clusters and the limit on values count between runs too."""
    storage = Storage(str(tmp_path))
    metrics = query_metrics(spark).withColumnRenamed("m", "mrr_at_3").withColumn("judged_at_3", F.lit(0.9))
    poor = F.when(F.col("query_id").isin("q0", "q1"), 0.5).otherwise(F.col("judged_at_3"))
    settings = {
        "metrics": ["mrr@3"],
        "segments": [["each"]],
        "inputs": {"impressions": {"path": "log"}},
        "statistics": {"cluster": "intent", "max_values": 10, "many_values": "other"},
    }
    facts: dict[str, Any] = {"seconds": {}, "inputs": {}, "code": "c", "spark": "4", "config_hash": "h"}
    runs = []
    for date, table in ((DAY, metrics.where("system = 'a'")), (DAY.replace(day=2), metrics.where("system = 'b'"))):
        with_lists = table.withColumns({"each": F.col("query_id"), "retrieved": F.lit(3)})
        with Attempt(storage, date, str(date)) as attempt:
            attempt.write("query_metrics", with_lists.withColumn("judged_at_3", poor) if date == DAY else with_lists)
            conventions = {"unjudged": "cut_then_condense"}
            runs.append(attempt.commit(**facts, config=settings, systems=("a", "b"), conventions=conventions))
    result = compare_runs(spark, str(tmp_path), (runs[0], runs[1]), ("a", "b"))
    whole = next(row for row in result.comparisons if row["segment"] == "all")
    assert (whole["queries"], whole["unjudged"]) == (38, 2)
    assert {row["value"] for row in result.comparisons if row["segment"] == "each"} >= {"(other)"}
    assert len({row["value"] for row in result.comparisons if row["segment"] == "each"}) <= 11
    d = np.array([b - a for q, a, b in _pairs(metrics) if q not in ("q0", "q1")])
    cluster = np.array([int(q[1:]) % 8 for q, _, _ in _pairs(metrics) if q not in ("q0", "q1")])
    meat = sum((d - d.mean())[cluster == c].sum() ** 2 for c in range(8))
    assert whole["stderr"] == pytest.approx(np.sqrt(8 / 7 * meat) / 38)


def _pairs(table: DataFrame) -> list[tuple[str, float, float]]:
    """Each query with the values of both systems."""
    values = {(row["query_id"], row["system"]): row["mrr_at_3"] for row in table.collect()}
    return [(query, values[query, "a"], values[query, "b"]) for query in sorted({query for query, _ in values})]
