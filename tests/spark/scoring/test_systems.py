"""Metrics of whole systems on Spark: the registered kernel decides, not the stage."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from pipelines.scoring.systems import score_systems
from schemas.inputs import DOCUMENTS, RANKINGS
from udfs.conventions import Conventions
from udfs.exposure import Exposure
from udfs.multi_list import evaluate_systems
from udfs.ragged import Floats
from udfs.registry import METRICS, metric, parse_metrics

LISTS = [
    ("s", "q1", "a", 1, None),
    ("s", "q1", "a", 2, None),
    ("s", "q1", "b", 3, None),
    ("s", "q2", "a", 1, None),
    ("s", "q2", "not ours", 2, None),
    ("t", "q1", "not ours", 1, None),
]
CATALOGUE = "abcda"  # a document that is listed twice counts once


@pytest.fixture
def repeated_coverage() -> Iterator[str]:
    def repeated_coverage(exposure: Exposure, k: int) -> Floats:
        """The share of the catalogue that is in the top k of at least two lists."""
        shown = exposure.documents.counts(exposure.in_catalogue & (exposure.list_count >= 2))
        share: Floats = shown / np.float64(exposure.catalogue_size) * (exposure.lists > 0)
        return share

    metric(reference="a test", cutoff="required", scope="system", condensable=False)(repeated_coverage)
    yield "repeated_coverage"
    del METRICS._entries["repeated_coverage"]


def score(spark: SparkSession, metrics: list[str]) -> dict[tuple[str, str], tuple[float, int]]:
    rows = score_systems(
        spark.createDataFrame(LISTS, RANKINGS.struct()),
        spark.createDataFrame([(doc, None, None, None) for doc in CATALOGUE], DOCUMENTS.struct()),
        specs=parse_metrics(metrics),
        conventions=Conventions(),
    )
    return {(row["system"], row["metric"]): (row["macro"], row["queries"]) for row in rows.collect()}


def test_coverage_counts_a_document_of_the_catalogue_once(spark: SparkSession) -> None:
    assert score(spark, ["catalog_coverage@1", "catalog_coverage@2"]) == {
        ("s", "catalog_coverage_at_1"): (0.25, 2),
        ("s", "catalog_coverage_at_2"): (0.5, 2),  # b moves up to rank 2, where the duplicate was
        ("t", "catalog_coverage_at_1"): (0.0, 1),
        ("t", "catalog_coverage_at_2"): (0.0, 1),
    }


def test_a_second_metric_of_whole_systems_works_on_spark_and_in_memory(
    spark: SparkSession, repeated_coverage: str
) -> None:
    metrics = [f"{repeated_coverage}@1", f"{repeated_coverage}@2", "catalog_coverage@2"]
    on_spark = score(spark, metrics)
    assert on_spark["s", "repeated_coverage_at_1"] == (0.25, 2)
    assert on_spark["t", "repeated_coverage_at_2"] == (0.0, 1)
    rankings = pd.DataFrame(LISTS, columns=["system", "query_id", "doc_id", "rank", "score"]).drop(columns="score")
    in_memory = evaluate_systems(rankings, pd.DataFrame({"doc_id": list(CATALOGUE)}), metrics).set_index("system")
    for (system, key), (value, _) in on_spark.items():
        assert in_memory.loc[system, key] == value
