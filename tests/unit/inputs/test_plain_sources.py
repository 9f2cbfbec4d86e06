"""What workers read is known from the settings before Spark starts, and with it how well Java has to optimise."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from pipelines.config.model import Config
from pipelines.plan import LIST_ROWS, define_evaluation, look_ahead

SIZE = 3_200  # bytes of each input


def measure(folder: Path, more: dict[str, Any], **shape: str) -> int:
    """The bytes that Java reads row by row, of three inputs in Parquet; `shape` is added to the first."""
    names = ("rankings", "judgments", "queries")
    for name in names:
        (folder / f"{name}.parquet").write_bytes(b" " * SIZE)
    inputs = {name: {"path": str(folder / f"{name}.parquet"), "format": "parquet"} for name in names}
    inputs["rankings"] |= shape
    config = Config.model_validate({"inputs": inputs, "warehouse": str(folder / "warehouse")} | more)
    local = look_ahead(define_evaluation(config), dt.date(2026, 11, 1))
    assert local is not None
    return local.spark_bytes


def test_of_lists_that_workers_read_java_reads_their_metrics(tmp_path: Path) -> None:
    assert measure(tmp_path, {}) == 3 * SIZE // LIST_ROWS


@pytest.mark.parametrize(
    ("more", "shape"),
    [
        ({}, {"where": "rank < 20"}),
        ({}, {"format": "json"}),
        ({"metrics": ["subtopic_recall@5"]}, {}),
        ({"statistics": {"label_draws": 5}}, {}),
    ],
)
def test_java_reads_every_row_of_what_only_spark_can_shape_or_join(
    tmp_path: Path, more: dict[str, Any], shape: dict[str, str]
) -> None:
    assert measure(tmp_path, more, **shape) == 3 * SIZE
