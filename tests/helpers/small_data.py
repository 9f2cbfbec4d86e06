"""A small, clean data set with every kind of table, to be corrupted by tests, and a quick way to inspect it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession

from pipelines.config.model import Config
from pipelines.inputs.read import InputTable
from pipelines.inputs.validate import describe_input, validate_inputs
from pipelines.quality.inspect import Inspection
from pipelines.quality.results import Result

DATE = dt.date(2026, 11, 2)
LOG = ("impressions", "interactions")
LISTS = ("rankings", "judgments", "queries")
QUERIES = 24
PAGES = 120
NAMES = [f"größe {q:02d}" for q in range(QUERIES)]  # with letters that a wrong encoding corrupts

Frames = dict[str, pd.DataFrame]


def build_clean_tables() -> Frames:
    """Two days of a log, the lists of two systems, and judgments of them."""
    start = dt.datetime(2026, 11, 1, 0, 30)
    pages = [
        {
            "serp_id": f"s{page:03d}",
            "query_id": NAMES[page % QUERIES],
            "user_id": f"u{page % 40}",
            "system": "ab"[page % 2],
            "ts": start + dt.timedelta(minutes=23 * page),
        }
        for page in range(PAGES)
    ]
    impressions = pd.DataFrame(
        [page | {"doc_id": f"{page['query_id']}-d{p}", "position": p} for page in pages for p in (1, 2, 3, 4)]
    )
    clicked = impressions[(impressions.position == 1) & (impressions.index % 3 == 0)]
    interactions = pd.DataFrame(
        {
            "event_id": [f"e{n:03d}" for n in range(len(clicked))],
            "kind": ["click"] * (len(clicked) - 2) + ["cart", "purchase"],
            "doc_id": clicked.doc_id.to_list(),
            "user_id": clicked.user_id.to_list(),
            "serp_id": clicked.serp_id.to_list(),
            "ts": (clicked.ts + pd.Timedelta(minutes=1)).to_list(),
            "dwell_seconds": [30.0 + n for n in range(len(clicked))],
        }
    )
    rankings = pd.DataFrame(
        [
            {"system": system, "query_id": q, "doc_id": f"{q}-d{(r + shift) % 5}", "rank": r}
            for shift, system in enumerate("ab")
            for q in NAMES
            for r in (1, 2, 3, 4)
        ]
    )
    judgments = pd.DataFrame(
        [
            {"query_id": q, "doc_id": f"{q}-d{d}", "grade": float((d + n) % 4)}
            for n, q in enumerate(NAMES)
            for d in range(5)
        ]
    )
    queries = pd.DataFrame({"query_id": NAMES, "weight": [float(n + 1) for n in range(QUERIES)]})
    return {
        "impressions": impressions,
        "interactions": interactions,
        "rankings": rankings,
        "judgments": judgments,
        "queries": queries,
    }


def build_config(tables: Sequence[str], **changes: Any) -> Config:
    """A configuration that reads these tables from folders by date, the log of two days."""
    inputs = {name: {"path": f"data/{name}/{{date}}", "days": 2 if name in LOG else 1} for name in tables}
    return Config.model_validate({"inputs": inputs, "metrics": ["ndcg@3"]} | changes)


def build_inputs(spark: SparkSession, frames: Mapping[str, pd.DataFrame]) -> dict[str, InputTable]:
    """The tables as if they had been read."""
    tables = {name: pa.Table.from_pandas(frame, preserve_index=False) for name, frame in frames.items()}
    return {
        name: InputTable(raw=spark.createDataFrame(table), places=("memory",), missing_days=(), files=1, digest=name)
        for name, table in tables.items()
    }


def inspect_tables(
    spark: SparkSession, frames: Mapping[str, pd.DataFrame], past: Sequence[Mapping[str, Any]] = (), **changes: Any
) -> tuple[Inspection, dict[str, dict[str, Any]]]:
    """Inspect these tables; returns the inspection, and the figures that a later run reads of it."""
    inputs = build_inputs(spark, frames)
    config = build_config(list(inputs), **changes)
    inspection = Inspection(config, DATE, [dict(run) for run in past])
    validated = validate_inputs(inputs, config, inspection.request_counts)
    inspection.check_inputs(inputs, validated)
    counts = validated.counts
    figures = {name: describe_input(source, counts[name]) | inspection.figures[name] for name, source in inputs.items()}
    return inspection, figures


def list_failing(results: Sequence[Result]) -> set[tuple[str, str]]:
    """The table and the name of every check that failed."""
    return {(result.table, result.check) for result in results if not result.passed}
