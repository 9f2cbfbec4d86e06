"""`assay.evaluate` in memory and on Spark: equal contracts, hashes, metrics, means and comparisons."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import assay
from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.inputs.count import CountRequest, count_rows
from pipelines.labels.denoise.columns import Texts, hash_chained
from pipelines.labels.denoise.row_hash import hash_row, hash_rows
from schemas.conform import conform
from schemas.inputs import INTERACTIONS, RANKINGS
from tests.unit.assay.test_evaluate import simulate
from tests.unit.inputs.test_in_memory import build_awkward_rankings, count_reasons
from udfs.xxhash import hash_like_spark

KEYS = {
    "query_metrics": ["system", "query_id"],
    "segment_metrics": ["system", "segment", "value", "metric"],
    "comparisons": ["baseline", "candidate", "segment", "value", "metric"],
}


def test_spark_rejects_the_same_rows_for_the_same_reasons(spark: SparkSession) -> None:
    raw = spark.createDataFrame(build_awkward_rankings())
    assert dict(count_rows(conform(raw, RANKINGS), CountRequest()).rows.rejected) == count_reasons()


def test_hashes_are_those_of_spark(spark: SparkSession) -> None:
    texts = ["", *["é" * length for length in range(40)], *["x" * length for length in range(80)]]
    hashes = spark.createDataFrame(pa.table({"text": texts})).select(F.xxhash64("text")).toArrow()
    assert hash_like_spark(pa.array(texts, pa.large_string())).tolist() == hashes[0].to_pylist()


def test_hashes_of_several_columns_are_those_of_spark(spark: SparkSession) -> None:
    kinds, moment = ["click", "cart"], dt.datetime(2026, 11, 1, 12, 0, 0, 1)
    rows = [
        (
            f"e{n}" * (n % 40),
            kinds[n % 2],
            None if n % 5 == 0 else f"größe {n}",
            "u",
            moment + dt.timedelta(microseconds=n),
            None if n % 3 == 0 else "p" * n,
            [0.0, -0.0, 1.5, float("nan"), None][n % 5],
            None if n % 2 else float(n),
        )
        for n in range(90)
    ]
    table = spark.createDataFrame(rows, INTERACTIONS.struct().simpleString()[7:-1])
    expected = table.select(hash_row(), F.xxhash64("kind", "doc_id")).toArrow()
    rows_of_arrow = table.toArrow()
    assert hash_rows(rows_of_arrow).tolist() == expected[0].to_pylist()
    texts = [Texts.of(rows_of_arrow[name]) for name in ("kind", "doc_id")]
    assert hash_chained(texts).tolist() == expected[1].to_pylist()


def test_a_run_on_spark_has_equal_bits(spark: SparkSession, tmp_path: Path) -> None:
    """The run is published from files; its metrics, means and comparisons are those of `assay.evaluate`."""
    tables = simulate()
    for name, table in tables.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    settings: dict[str, Any] = {
        "metrics": ["ndcg@5", "recall@5", "map"],
        "segments": ["device"],
        "statistics": {"tests": ["randomisation"], "replicates": 100},
        "compare": {"baseline": "old"},
    }
    got = assay.evaluate(**tables, **settings)
    inputs = {name: {"path": str(tmp_path / f"{name}.parquet")} for name in tables}
    run = {"inputs": inputs, "warehouse": str(tmp_path / "warehouse"), "checks": "off", "report": False}
    evaluate(spark, Config.model_validate(settings | run), dt.date(2026, 11, 1))
    for name, keys in KEYS.items():
        published = assay.read_table(spark, str(tmp_path / "warehouse"), name).drop("dt", "run").toPandas()
        in_memory = getattr(got, name)
        assert list(in_memory.columns) == list(published.columns)
        mine, theirs = (side.sort_values(keys, ignore_index=True) for side in (in_memory, published))
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True, check_dtype=False)
    assert len(got.comparisons) == 9
