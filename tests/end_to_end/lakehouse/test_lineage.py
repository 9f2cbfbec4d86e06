"""Lineage by the Spark listener of OpenLineage: what a run reads and writes, and which table comes from which."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Run
from tests.end_to_end.lakehouse.conftest import JARS

pytestmark = pytest.mark.lakehouse


def test_the_inputs_and_the_tables_of_a_run_appear_in_its_lineage(run: Run, demo: Path, tmp_path: Path) -> None:
    (jar,) = JARS.glob("openlineage-spark_*")
    events = tmp_path / "lineage.jsonl"
    settings = {
        "spark.jars": jar,
        "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
        "spark.openlineage.namespace": "search",
        "spark.openlineage.appName": "assay_evaluate",
        "spark.openlineage.dataset.removePath.pattern": "(.*)(?<remove>/_attempts/[^/]+/tables)(.*)",
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": events,
    }
    values = [f"spark.settings={{{key}: '{value}'}}" for key, value in settings.items()]
    values += [f"warehouse={tmp_path}/warehouse", "compare={baseline: bm25, movers: 20}"]
    options = [word for value in values for word in ("--set", value)]
    done = run("assay", "evaluate", "--config", demo / "demo.yaml", "--date", "2026-11-01", *options)
    assert done.returncode == 0, done.stderr
    assert "OpenLineage" not in done.stderr
    sources = read_sources(events)
    inputs = {f"{demo}/data/{name}" for name in ("rankings", "judgments", "queries")}
    assert sources[f"{tmp_path}/warehouse/query_metrics"] == inputs
    tables = ("query_metrics", "segment_metrics", "comparisons", "query_changes", "quarantine")
    assert set(sources) >= {f"{tmp_path}/warehouse/{name}" for name in tables}


def read_sources(events: Path) -> dict[str, set[str]]:
    """From which datasets each dataset was written."""
    sources: dict[str, set[str]] = defaultdict(set)
    for line in events.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        assert event["job"]["namespace"] == "search"
        assert event["job"]["name"].partition(".")[0] == "assay_evaluate", "one name for all dates"
        for output in event["outputs"] if event["eventType"] == "COMPLETE" else ():
            sources[output["name"]] |= {dataset["name"] for dataset in event["inputs"]}
    return sources
