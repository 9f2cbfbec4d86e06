"""`assay.label`: labels from a log."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.arguments import SPARK, build_arguments_config, find_kind, read_date, require_session, select_given

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from assay.result import LabelResult


def label(
    impressions: Any,
    interactions: Any,
    judgments: Any = None,
    *,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    date: dt.date | str | None = None,
    spark: SparkSession | None = None,
    warehouse: str | Path | None = None,
    **options: Any,
) -> LabelResult:
    """Build relevance labels from shown results and what people did with them, as `assay label` does.

    Tables are those that `assay.evaluate` takes, and the labels are of the kind of `impressions`. The work is done by
    Spark: in the session of the argument or of the tables, else in one that is started and stopped here. `options` are
    keys of the configuration, of which `labels` matters most.
    """
    tables = select_given(
        {"impressions": impressions, "interactions": interactions, "judgments": judgments},
        ("impressions", "interactions"),
    )
    require_session(spark)
    day = read_date(date)  # before a JVM starts
    from assay.on_spark import expand_paths, find_session, run_on_spark

    sources = expand_paths(tables)
    config = build_arguments_config("assay.label", sources, columns or {}, options)
    from assay.result import LabelResult
    from pipelines.label import label as label_run

    session = find_session(tables, spark)
    run = run_on_spark(label_run, sources, config, day, spark=session, warehouse=warehouse)
    kind = find_kind(impressions)
    return LabelResult(run, kind, session if kind == SPARK else None)
