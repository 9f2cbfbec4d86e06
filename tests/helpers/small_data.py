"""A small, clean data set with every kind of table, to be broken on purpose; and a quick way to inspect it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession

from pipelines.check import check
from pipelines.config import Config
from pipelines.quality.inspect import Inspection, record
from pipelines.quality.results import Result
from pipelines.read import Input

DATE = dt.date(2026, 11, 2)
LOG = ("impressions", "interactions")
LISTS = ("rankings", "judgments", "queries")
QUERIES = 24
PAGES = 120
NAMES = [f"größe {q:02d}" for q in range(QUERIES)]  # with letters that an encoding can break

Frames = dict[str, pd.DataFrame]


def clean() -> Frames:
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


def setting(tables: Sequence[str], **changes: Any) -> Config:
    """A configuration that reads these tables from folders by date, the log of two days."""
    inputs = {name: {"path": f"data/{name}/{{date}}", "days": 2 if name in LOG else 1} for name in tables}
    return Config.model_validate({"inputs": inputs, "metrics": ["ndcg@3"]} | changes)


def held(spark: SparkSession, frames: Mapping[str, pd.DataFrame]) -> dict[str, Input]:
    """The tables as they would have been read."""
    tables = {name: pa.Table.from_pandas(frame, preserve_index=False) for name, frame in frames.items()}
    return {name: Input(spark.createDataFrame(table), ("memory",), (), 1, name) for name, table in tables.items()}


def inspect(
    inputs: Mapping[str, Input], past: Sequence[Mapping[str, Any]] = (), **changes: Any
) -> tuple[Inspection, dict[str, dict[str, Any]]]:
    """Inspect these inputs; the inspection, and what a later one would know of it."""
    config = setting(list(inputs), **changes)
    inspection = Inspection(config, DATE, [dict(run) for run in past])
    checked = check(inputs, config, inspection.ask)
    inspection.inputs(inputs, checked)
    known = {name: record(source, checked, name) | inspection.figures[name] for name, source in inputs.items()}
    return inspection, known


def failing(results: Sequence[Result]) -> set[tuple[str, str]]:
    """The table and the name of every check that failed."""
    return {(result.table, result.check) for result in results if not result.passed}
