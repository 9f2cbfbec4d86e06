"""The Spark path and the in-memory path agree on random data, for every metric and any partitioning."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pipelines.scoring.score import ScoringTables, score_lists
from schemas.inputs import DECISIONS, DOCUMENTS, JUDGMENTS, QUERIES, RANKINGS
from schemas.table import Table
from tests.helpers.judgments import GRADES_DDL
from udfs.conventions import Conventions
from udfs.evaluator import evaluate_tables
from udfs.registry import parse_metrics

METRICS = [
    *(
        f"{name}@{k}"
        for name in ("ndcg", "ndcg(gain=linear)", "dcg", "recall", "precision", "f1", "hit")
        for k in (1, 5)
    ),
    "recall(cap=true,rel=2)@5",
    "precision(over=retrieved)@10",
    "ndcg(judged_only=true)@5",
    "ndcg",
    "rprec",
    "bpref",
    "mrr",
    "mrr@3",
    "map",
    "map(norm=cut)@5",
    "err@10",
    "rbp",
    "rbp(p=0.95,graded=true)",
    "rbp_residual",
    "q_measure@10",
    "kendall_tau",
    "kendall_tau(variant=a)",
    "judged@5",
    "alpha_ndcg@5",
    "alpha_ndcg(alpha=0.3)",
    "subtopic_recall@5",
    "intra_list_diversity@5",
    "novelty@5",
    "routing_accuracy",
    "gate_efficiency",
]
CONVENTIONS = {
    "default": Conventions(max_grade=3),
    "condensed": Conventions(max_grade=3, unjudged="cut_then_condense", ties="doc_id_asc"),
    "trec": Conventions(max_grade=3, order="score_float32", no_relevant="zero", nothing_returned="skip"),
}


def tables(seed: int) -> dict[str, pd.DataFrame]:
    """Hard rankings: ties, duplicates, gaps, unjudged documents, queries only one side knows, any Unicode."""
    random = np.random.default_rng(seed)
    rows = 3_000
    doc = np.array([("ü🙂" if d % 3 else "\x00é") + str(d) for d in range(40)])
    rank = random.integers(0, 30, rows).astype(np.float64)
    return {
        "rankings": pd.DataFrame(
            {
                "system": random.choice(["a", "b ö"], rows),
                "query_id": random.integers(0, 80, rows).astype(str),
                "doc_id": random.choice(doc, rows),
                "rank": rank,
                "score": random.integers(0, 9, rows) / 3 + 1e-9 * random.integers(0, 2, rows),
            }
        ),
        "judgments": pd.DataFrame(
            {
                "query_id": random.integers(5, 90, 1_500).astype(str),
                "doc_id": random.choice(doc, 1_500),
                "grade": random.choice([-1.0, 0.0, 0.25, 1.0, 2.0, 3.0], 1_500, p=[0.1, 0.3, 0.1, 0.2, 0.2, 0.1]),
            }
        ),
        "queries": pd.DataFrame({"query_id": np.arange(95).astype(str), "weight": random.random(95)}),
        "documents": pd.DataFrame(
            {
                "doc_id": doc,
                "category": [
                    random.permutation(["x", "y", "z", "ü"])[:size] for size in random.integers(0, 4, len(doc))
                ],
                "popularity": random.integers(0, 50, len(doc)).astype(np.float64),
            }
        ),
        "decisions": pd.DataFrame(
            {
                "system": "a",
                "query_id": np.arange(60).astype(str),
                "expert": random.choice(np.array(["m", "n", None]), 60),
                "optimal_expert": random.choice(["m", "n"], 60),
                "retrieved": random.choice([True, False], 60),
                "retrieval_needed": random.choice(np.array([True, False, None]), 60),
            }
        ),
    }


@pytest.mark.parametrize(
    ("name", "partitions"), [("default", "1"), ("default", "11"), ("condensed", "3"), ("trec", "1"), ("trec", "3")]
)
def test_spark_and_memory_agree(spark: SparkSession, name: str, partitions: str) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    data, conventions = tables(int(partitions)), CONVENTIONS[name]

    def on_spark(table: Table) -> object:
        frame = data[table.name]
        kinds = {"int": pa.int32(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}
        kinds["array<string>"] = pa.list_(pa.string())
        columns = [column for column in table.columns if column.name in frame]
        arrow = pa.table({c.name: pa.array(frame[c.name], kinds[c.type], from_pandas=True) for c in columns})
        return spark.createDataFrame(arrow)

    computed = score_lists(
        on_spark(RANKINGS),  # type: ignore[arg-type]
        ScoringTables(*[on_spark(table) for table in (JUDGMENTS, QUERIES, DOCUMENTS, DECISIONS)]),  # type: ignore[arg-type]
        systems=["a", "b ö"],
        segments=[],
        specs=parse_metrics(METRICS),
        conventions=conventions,
    )
    expected = evaluate_tables(
        data["rankings"],
        data["judgments"],
        METRICS,
        queries=data["queries"],
        documents=data["documents"],
        decisions=data["decisions"],
        conventions=conventions,
    )
    keys = ["system", "query_id"]
    both = (computed.rows().toPandas(), expected)
    scored, expected = (table.sort_values(keys).reset_index(drop=True) for table in both)
    assert scored[keys].equals(expected[keys].astype(object))
    for column in expected.columns[2:]:
        left, right = scored[column].to_numpy(np.float64), expected[column].to_numpy(np.float64)
        assert np.allclose(left, right, rtol=0, atol=1e-12, equal_nan=True), column
        assert np.isfinite(right).any(), f"{column} is undefined everywhere, which compares nothing"


def test_the_stage_before_is_compared_with(spark: SparkSession) -> None:
    ranked = [("early", "q", d, n, None) for n, d in enumerate("abcdef")] + [
        ("late", "q", d, n, None) for n, d in enumerate("fax")
    ]
    scored = score_lists(
        spark.createDataFrame(ranked, RANKINGS.struct()),
        ScoringTables(
            spark.createDataFrame([("q", "a", 1.0), ("q", "b", 2.0), ("q", "x", 3.0)], GRADES_DDL),
            earlier="early",
        ),
        systems=["early", "late"],
        segments=[],
        specs=parse_metrics(["retention(from=4)@2", "rbo", "rank_tau", "recall@2"]),
        conventions=Conventions(),
    )
    late = {row["system"]: row for row in scored.rows().collect()}["late"]
    assert late["retention_from_4_at_2"] == 0.5  # a and b were handed over, a is kept
    assert 0 < late["rbo"] < 1
    assert late["recall_at_2"] == pytest.approx(1 / 3)
