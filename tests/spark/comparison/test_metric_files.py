"""Estimates of query metrics that workers read from files are those of the rows that Spark reads, to the last bit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from pipelines.comparison.estimate import estimate_metrics
from pipelines.comparison.segments import limit_segment_values
from schemas.errors import DataQualityError
from udfs.statistics.plan import Plan

PLAN = Plan(
    systems=("a", "b"),
    metrics=("m", "k"),
    pooled=("k",),
    segments=(("device",), ("device", "locale")),
    pairs=(("a", "b"),),
    judged=("k", None),
    min_judged=0.1,
)
KEY = ["baseline", "candidate", "segment", "value", "metric"]


def write_files(folder: Path) -> list[str]:
    """Rows of two systems; the second half of each query is in another file, and some numbers are unknown."""
    random = np.random.default_rng(5)
    size = 300
    rows = pd.DataFrame(
        {
            "query_id": np.tile([f"query {number} ü" for number in range(size)], 2),
            "system": np.repeat(["a", "b"], size),
            "weight": np.tile(random.integers(1, 9, size).astype(float), 2),
            "device": np.tile(random.choice(np.array(["ios", "web", None], dtype=object), size), 2),
            "locale": np.tile(random.choice(["de", "en"], size), 2),
            "retrieved": pd.array(random.integers(0, 10, 2 * size), "Int32"),
            "m": np.where(random.random(2 * size) < 0.2, np.nan, random.random(2 * size)),
            "k": random.beta(0.5, 1, 2 * size),
            "k__pool": random.integers(1, 6, 2 * size).astype(float),
        }
    )
    folder.mkdir()
    parts = {"0": rows[rows.index % 3 == 0], "1": rows[rows.index % 3 == 1], "2": rows[rows.index % 3 == 2]}
    parts["1"], parts["2"] = (
        parts["1"][parts["1"].system == "a"],
        pd.concat([parts["2"], parts["1"].query("system == 'b'")]),
    )
    for name, part in parts.items():
        part.to_parquet(folder / f"{name}.parquet", index=False)
    return [str(folder / f"{name}.parquet") for name in parts]


def collect(estimates: Any) -> pd.DataFrame:
    rows: pd.DataFrame = estimates.toPandas()
    return rows.sort_values(KEY, na_position="first").reset_index(drop=True)


@pytest.mark.parametrize("replicates", [0, 20])
def test_files_have_the_estimates_of_their_rows(spark: SparkSession, tmp_path: Path, replicates: int) -> None:
    files = write_files(tmp_path / "rows")
    rows, plan = spark.read.parquet(str(tmp_path / "rows")), replace(PLAN, bootstrap=replicates)
    expected = collect(estimate_metrics(rows, plan=plan))
    pd.testing.assert_frame_equal(collect(estimate_metrics(rows, plan=plan, files=files)), expected, check_exact=True)
    assert len(expected) > 20


def test_segments_of_files_with_few_values_stay_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    files = write_files(tmp_path / "rows")
    rows = spark.read.parquet(str(tmp_path / "rows"))
    assert limit_segment_values(rows, segments=PLAN.segments, limit=6, many="refuse", files=files) is rows


def test_segments_of_files_with_many_values_are_limited(spark: SparkSession, tmp_path: Path) -> None:
    files = write_files(tmp_path / "rows")
    rows = spark.read.parquet(str(tmp_path / "rows"))
    with pytest.raises(DataQualityError, match="'device / locale' has about 6 values"):
        limit_segment_values(rows, segments=PLAN.segments, limit=4, many="refuse", files=files)
    merged = limit_segment_values(rows, segments=[("device",)], limit=1, many="other", files=files)
    assert {row[0] for row in merged.select("device").distinct().collect()} >= {"(other)"}
