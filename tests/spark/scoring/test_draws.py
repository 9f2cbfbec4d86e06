"""Scoring on draws through Spark: the same bits as in memory, whatever the partitioning."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.scoring.score import Scorer, ScoringTables, score_lists
from tests.helpers.drawn import POSTERIOR, collect, draw_tables, fit_labels
from udfs.draws import NormalDraws, PosteriorDraws
from udfs.posterior.draw import CUTS
from udfs.registry import parse_metrics
from udfs.tabulate import tabulate_metrics

SPECS = parse_metrics(["ndcg@5", "recall@5", "mrr", "precision@5", "alpha_ndcg@5", "judged@5", "unseen@5", "err@5"])
TABLES = draw_tables()


def send(spark: SparkSession, table: pa.Table) -> DataFrame:
    frame = spark.createDataFrame(table)
    return frame.withColumn("score", F.lit(None).cast("double")) if "rank" in frame.columns else frame


def build_scorer(spark: SparkSession, labels: DataFrame, draws: PosteriorDraws | NormalDraws) -> Scorer:
    categories = F.when(F.col("category").isNotNull(), F.array("category"))  # as conformed: text is an array of one
    return Scorer(
        rankings=send(spark, TABLES[0]),
        tables=ScoringTables(labels, documents=send(spark, TABLES[2]).withColumn("category", categories)),
        systems=["a", "b"],
        segments=[],
        specs=SPECS,
        conventions=POSTERIOR,
        draws=draws,
        baseline="a",
    )


def read_rows(table: DataFrame) -> dict[tuple[str, str], dict[str, str]]:
    """The rows by system and query, with values as text, so that equal means equal to the last bit."""
    return {
        (row["system"], row["query_id"]): {name: str(value) for name, value in row.asDict().items()}
        for row in table.collect()
    }


def test_draws_do_not_depend_on_partitions_and_equal_those_in_memory(spark: SparkSession) -> None:
    draws = PosteriorDraws(fit_labels(TABLES[1]), CUTS)
    columns = tabulate_metrics(collect(TABLES, draws), SPECS, POSTERIOR, baseline=0, pooled=True)
    expected = {
        (row["system"], row["query_id"]): {name: str(value) for name, value in row.items()}
        for row in pa.table(columns).to_pylist()
    }
    scorer = build_scorer(spark, send(spark, TABLES[1]), draws)
    for partitions in ("1", "7", "23"):
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
        rows = read_rows(scorer(scorer.tables.labels.repartition(3)))
        assert rows.keys() == expected.keys()
        for key, row in rows.items():
            del row["counted"]  # not a number of the tabulation
            assert row == {name: expected[key][name] for name in row}, (partitions, key)
        assert {"ndcg_at_5__sd", "ndcg_at_5__delta_sd", "recall_at_5__pool", "draws"} <= rows["a", "q1"].keys()


def test_other_rules_score_the_published_grades_of_what_was_shown(spark: SparkSession) -> None:
    labels = send(spark, TABLES[1]).fillna({"grade": 1.0})  # as a prior grades what nobody was shown
    scorer = build_scorer(spark, labels, PosteriorDraws(fit_labels(TABLES[1]), CUTS))
    shown = labels.where("substring(evidence, 1, 1) = X'01'").drop("evidence")
    for rule in ("zero", "cut_then_condense"):
        conventions = POSTERIOR.model_copy(update={"unjudged": rule})
        table = replace(scorer, conventions=conventions)(labels)
        assert "draws" not in table.columns
        plain = score_lists(
            scorer.rankings,
            replace(scorer.tables, labels=shown),
            systems=["a", "b"],
            segments=[],
            specs=SPECS,
            conventions=conventions,
        )
        rows = read_rows(table)
        assert rows == read_rows(plain.rows())
    assert read_rows(scorer(shown)) == rows  # labels without evidence have no posterior


def test_human_grades_with_a_deviation_keep_their_metrics_and_have_a_spread(spark: SparkSession) -> None:
    judged = send(spark, TABLES[1]).where("grade IS NOT NULL").drop("evidence")
    zero = POSTERIOR.model_copy(update={"unjudged": "zero"})
    scorer = replace(build_scorer(spark, judged, NormalDraws(draws=20, seed=0, max_grade=3.0)), conventions=zero)
    with_deviation = judged.withColumn("grade_sd", F.when(F.col("doc_id") < "d2", 0.5))
    rows, plain = read_rows(scorer(with_deviation)), read_rows(scorer(judged))
    for key, row in plain.items():
        assert row == {name: rows[key][name] for name in row}
    spreads = [float(row["ndcg_at_5__sd"]) for row in rows.values() if row["ndcg_at_5__sd"] != "None"]
    assert max(spreads) > 0.01
    assert min(spreads) == pytest.approx(0.0, abs=1e-12)  # a query whose grades are certain
