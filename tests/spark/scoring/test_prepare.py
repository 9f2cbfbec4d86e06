"""Lists that cannot be evaluated are refused."""

import pytest
from pyspark.sql import SparkSession

from pipelines.scoring.require import require_common_queries
from pipelines.scoring.score import Scorer, ScoringTables
from schemas.errors import DataQualityError
from schemas.inputs import RANKINGS
from udfs.conventions import Conventions
from udfs.registry import parse_metrics

RANKED = [("new", "Q1", "a", 1, None), ("old", "q1", "a", 1, None)]


def test_a_system_without_a_labelled_query_is_refused(spark: SparkSession) -> None:
    labels = spark.createDataFrame([("q1", "a", 1.0), ("q2", "a", 1.0)], "query_id string, doc_id string, grade double")
    scorer = Scorer(
        rankings=spark.createDataFrame(RANKED, RANKINGS.struct()),
        tables=ScoringTables(labels),
        systems=["new", "old"],
        segments=[],
        specs=parse_metrics(["mrr"]),
        conventions=Conventions(),
    )
    scored = scorer(labels).cache()
    with pytest.raises(DataQualityError, match="no query that 'new' ranked has labels, such as 'Q1'; 'q1' has some"):
        require_common_queries(scored, scorer)
    require_common_queries(scored.where("system = 'old'"), scorer)
    scored.unpersist()
