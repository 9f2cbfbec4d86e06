"""Session models from a log to labels: the history of each result, and clicks per examination by hand."""

import datetime as dt
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from pipelines.config.model import Config
from pipelines.label import label
from pipelines.labels.denoise.pairs import select_cells, tally_rows
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.history import History, Read
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


def test_the_history_of_a_result(spark: SparkSession) -> None:
    """One page with clicks at 2 and 3, where two results stand, and a click at 5 that a rule drops."""
    rows = [("a", 1, 0, 0), ("b", 2, 1, 0), ("c", 3, 1, 0), ("d", 3, 0, 0), ("e", 4, 0, 0), ("f", 5, 1, 4)]
    names = "doc_id string, position int, clicks bigint, bits int"
    outcomes = spark.createDataFrame(rows, names).selectExpr(
        "*", "'s' AS serp_id", "'q' AS query_id", "'u' AS user_id", "'all' AS context", "'x' AS system",
        "timestamp '2026-01-05 12:00:00' AS ts", "1L AS impressions", "0L AS carts", "0L AS purchases",
        "CAST(NULL AS string) AS row", "1 AS page_mark", "false AS nameless",
    )  # fmt: skip

    def find_states(history: History, depth: int) -> dict[str, tuple[int, int, int]]:
        tallied = tally_rows(outcomes, DenoiseSettings(), history=history)
        cells = select_cells(tallied, max_position=depth, history=history)
        return {row.doc_id: (row.position, row.history, row.clicks) for row in cells.collect()}

    assert {doc: state for doc, (_, state, _) in find_states("read", 2).items()} == {
        "a": Read.ABOVE, "b": Read.ABOVE, "c": Read.LAST, "d": Read.ABOVE, "e": Read.BELOW
    }  # fmt: skip
    above = {"a": (1, 0, 0), "b": (2, 0, 1), "c": (3, 2, 1), "d": (3, 2, 0), "e": (4, 3, 0)}
    assert find_states("last_click", 50) == above
    assert find_states("last_click", 2) == {doc: (min(k, 2), min(last, 2), n) for doc, (k, last, n) in above.items()}
