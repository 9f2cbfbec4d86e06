"""`assay.evaluate`: from tables or paths to a compared result, in memory or on Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.arguments import (
    SPARK,
    build_arguments_config,
    find_kind,
    list_names,
    read_date,
    read_file,
    require_session,
    select_given,
)
from schemas.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from assay.result import EvaluationResult
    from pipelines.config.model import Config


def evaluate(
    rankings: Any = None,
    judgments: Any = None,
    metrics: Sequence[str] = ("ndcg@10", "recall@10"),
    baseline: str | None = None,
    *,
    impressions: Any = None,
    interactions: Any = None,
    opinions: Any = None,
    queries: Any = None,
    documents: Any = None,
    decisions: Any = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    date: dt.date | str | None = None,
    spark: SparkSession | None = None,
    warehouse: str | Path | None = None,
    **options: Any,
) -> EvaluationResult:
    """Evaluate ranked lists against judgments or a log, and compare the systems with `baseline`.

    Tables are DataFrames of pandas, Polars or Spark, Arrow tables, or paths of Parquet, CSV and JSON lines files, in
    the shape of their contracts (docs/tables.md); `columns` maps the names of a contract to those of the data, per
    table. `options` are keys of the configuration (docs/configuration.md), such as `segments`, `gate`, `statistics` and
    `conventions`.

    Judged tables in memory are evaluated in this process, without a JVM. With `spark`, DataFrames of Spark or a log, a
    run is made in the session, as by `assay evaluate` and with the same numbers; a table may then also be a section of
    `inputs`, such as `{"path": ..., "format": "trec_run"}`. It is published in `warehouse`, which must be reachable
    from the cluster, or in a temporary folder. `date` is that of the run, today by default.
    """
    tables = {
        "rankings": rankings,
        "judgments": judgments,
        "impressions": impressions,
        "interactions": interactions,
        "opinions": opinions,
        "queries": queries,
        "documents": documents,
        "decisions": decisions,
    }
    present = select_given(tables, () if impressions is not None else ("rankings", "judgments"))
    require_session(spark)
    compare = dict(options.get("compare", {})) | ({} if baseline is None else {"baseline": baseline})
    settings = dict(options) | {"metrics": list_names(metrics, "metrics"), "compare": compare}
    on_spark = spark is not None or any(find_kind(table) == SPARK for table in present.values())
    if on_spark or impressions is not None or any(isinstance(table, Mapping) for table in present.values()):
        return _evaluate_on_spark(present, settings, columns or {}, read_date(date), spark, warehouse)
    if warehouse is not None:
        hint = "publish the result with `.publish(warehouse)`"
        raise ConfigurationError("warehouse is for runs on Spark, and these tables are evaluated in memory", hint=hint)
    config = build_arguments_config("assay.evaluate", present, columns or {}, settings)
    return _evaluate_in_memory(present, config, read_date(date))


def _evaluate_on_spark(
    tables: Mapping[str, Any],
    settings: Mapping[str, Any],
    columns: Mapping[str, Mapping[str, str]],
    date: dt.date,
    spark: SparkSession | None,
    warehouse: str | Path | None,
) -> EvaluationResult:
    from assay.on_spark import expand_paths, find_session, run_on_spark

    sources = expand_paths(tables)
    config = build_arguments_config("assay.evaluate", sources, columns, settings)  # before anything that starts a JVM
    from assay.result import EvaluationResult
    from pipelines.evaluate import evaluate as evaluate_run

    session = find_session(tables, spark)
    run = run_on_spark(evaluate_run, sources, config, date, spark=session, warehouse=warehouse)
    kind = find_kind(tables.get("rankings", tables.get("impressions")))
    return EvaluationResult(run, kind, session if kind == SPARK else None)


def _evaluate_in_memory(tables: Mapping[str, Any], config: Config, date: dt.date) -> EvaluationResult:
    from assay.computed import InMemoryRun
    from assay.in_memory import evaluate_in_memory
    from assay.result import EvaluationResult
    from udfs.tables import TableReader

    read = {name: read_file(table) if isinstance(table, str | Path) else table for name, table in tables.items()}
    readers = {name: TableReader(table, name) for name, table in read.items()}
    run = InMemoryRun(evaluate_in_memory(readers, config), config, date)
    return EvaluationResult(run, find_kind(tables["rankings"]))
