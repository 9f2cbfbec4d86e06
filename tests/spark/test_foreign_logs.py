"""Logs of others, from their files to labels with a few lines of configuration, and what mistakes on the way say."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from pyspark.sql import SparkSession

from pipelines.config.load import load_config
from pipelines.config.model import Config
from pipelines.label import label
from pipelines.quality.results import format_results
from pipelines.run import inspect_inputs
from pipelines.warehouse.tables import read_table
from tests.helpers.foreign_logs import PAGES, QUERIES, RESULTS, count_clicks, write_arrays, write_ubi

DAY = dt.date(2026, 11, 1)
ARRAYS = """
inputs:
  impressions:
    path: {folder}/pages.json
    format: json
    explode: hits
    columns:
      {{serp_id: req.id, user_id: req.user, query_id: lower(trim(q)), doc_id: item.id, position: {position}, ts: {ts}}}
  interactions:
    path: {folder}/events.json
    format: json
    columns:
      event_id: concat(page, doc)
      kind: {{from: action, values: {{item_click: click, add_to_cart: cart}}}}
      serp_id: page
      doc_id: doc
      user_id: who
      ts: timestamp_seconds(bigint(when))
checks: fast
warehouse: {folder}/warehouse
"""
UBI = """
inputs:
  impressions: {{path: {folder}/ubi.ndjson, format: ubi}}
  interactions: {{path: {folder}/ubi.ndjson, format: ubi}}
checks: fast
warehouse: {folder}/warehouse
"""


def load(folder: Path, text: str, **values: str) -> Config:
    path = folder / "conf.yaml"
    path.write_text(text.format(folder=folder, **values), encoding="utf-8")
    return load_config(path).config


def test_a_ubi_export_becomes_labels_with_three_lines_of_inputs(spark: SparkSession, tmp_path: Path) -> None:
    write_ubi(tmp_path / "ubi.ndjson")
    config = load(tmp_path, UBI)
    outcome = label(spark, config, DAY)
    shown, used = outcome.manifest.inputs["impressions"], outcome.manifest.inputs["interactions"]
    pages = QUERIES * PAGES
    assert (shown["read"], shown["kept"], shown["ignored"]) == (pages * RESULTS, pages * RESULTS, {})
    assert (used["read"], used["kept"]) == (count_clicks(), count_clicks())
    assert used["ignored"] == {"action product_hover": pages}
    labels = read_table(spark, config.warehouse, "labels")
    assert labels.count() == QUERIES * RESULTS
    assert {row["query_id"] for row in labels.collect()} == {f"query {number}" for number in range(QUERIES)}
    assert label(spark, config, DAY).reused


def test_pages_with_arrays_and_milliseconds_become_labels_without_a_script(spark: SparkSession, tmp_path: Path) -> None:
    write_arrays(tmp_path)
    config = load(tmp_path, ARRAYS, position="pos + 1", ts="timestamp_millis(bigint(t))")
    outcome = label(spark, config, DAY)
    assert outcome.manifest.inputs["impressions"]["kept"] == QUERIES * PAGES * RESULTS
    assert outcome.manifest.inputs["interactions"]["kept"] == count_clicks()
    assert outcome.manifest.tables["labels"].rows == QUERIES * RESULTS


def test_a_wrong_unit_and_positions_from_zero_are_reported_with_the_line_to_write(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_arrays(tmp_path)
    inspection = inspect_inputs(spark, load(tmp_path, ARRAYS, position="pos", ts="t"), DAY)
    printed = "\n".join(format_results(inspection.summarise()))
    assert "positions_from_zero (position): 360 of 1,800 impressions are at position 0 (20 %)" in printed
    assert "inputs.impressions.columns.position: position + 1" in printed
    assert (
        "time_units (ts): 1,800 of 1,800 rows have a ts that must be in another unit: they look like milliseconds"
        in printed
    )
    assert "inputs.impressions.columns.ts: timestamp_millis(bigint(NAME))" in printed
