"""Session models from a log to labels: clicks per examination by hand."""

import datetime as dt
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from pipelines.config.model import Config
from pipelines.label import label
from pipelines.warehouse.tables import read_table

DAY = dt.date(2026, 1, 5)
CLICKED = ("a", "ac", "", "b", "bd", "a")  # on six pages with the results a, b, c, d


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("six pages")
    shown, done = [], []
    for n, clicked in enumerate(CLICKED):
        page = {"serp_id": f"s{n}", "user_id": f"u{n}", "ts": dt.datetime(2026, 1, 5, 12, 10 * n)}
        shown += [page | {"query_id": "q", "system": "x", "doc_id": d, "position": k} for k, d in enumerate("abcd", 1)]
        done += [page | {"event_id": f"{n}{d}", "kind": "click", "doc_id": d, "dwell_seconds": 30.0} for d in clicked]
    pd.DataFrame(shown).to_parquet(folder / "impressions.parquet", coerce_timestamps="us")
    pd.DataFrame(done).to_parquet(folder / "interactions.parquet", coerce_timestamps="us")
    return folder


@pytest.mark.parametrize(
    ("estimator", "examinations", "clicks"),
    [
        ("sdbn", [5, 3, 2, 1], [3, 2, 1, 1]),
        ("sdbn_satisfaction", [5, 3, 2, 1], [2, 1, 1, 1]),
        ("dcm", [6, 4, 3, 2], [3, 2, 1, 1]),
    ],
)
def test_labels_have_the_clicks_and_examinations_of_the_published_model(
    spark: SparkSession, folder: Path, estimator: str, examinations: list[float], clicks: list[int]
) -> None:
    config = Config.model_validate(
        {
            "inputs": {name: {"path": str(folder / f"{name}.parquet")} for name in ("impressions", "interactions")},
            "labels": {"propensity": {"estimator": estimator}},
            "checks": "off",
            "warehouse": str(folder / estimator),
        }
    )
    label(spark, config, DAY)
    labels = read_table(spark, config.warehouse, "labels").toPandas().sort_values("doc_id")
    assert labels["examinations"].tolist() == examinations
    assert labels["clicks"].tolist() == clicks
    assert labels["impressions"].tolist() == [6, 6, 6, 6]
