"""Runs on Spark for the public functions: in the caller's session, or in one of their own."""

from __future__ import annotations

import datetime as dt
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from assay.arguments import SPARK, expand_path, find_kind
from assay.computed import PublishedRun, open_working_folder
from jobs.support.session import REQUIRED, open_session, zip_packages
from pipelines.config.model import Config
from pipelines.inputs.shape import drop_fixed_views
from pipelines.warehouse.checkpoint import build_checkpointer
from pipelines.warehouse.leftovers import attempt_path, claim_attempt, remove_attempt
from pipelines.warehouse.storage import Storage
from schemas.spark_errors import raise_input_errors
from udfs.tables import TableReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from pipelines.plan import Outcome

# The sessions that have our packages, each with the folder of the zip, which Spark reads as long as the session lives.
_shipped: WeakKeyDictionary[SparkSession, tempfile.TemporaryDirectory[str]] = WeakKeyDictionary()


def find_session(tables: Mapping[str, Any], spark: SparkSession | None) -> SparkSession | None:
    """The session to run in: that of the argument, else that of the first DataFrame of Spark, else none."""
    frames = (table for table in tables.values() if find_kind(table) == SPARK)
    return spark or next((frame.sparkSession for frame in frames), None)


def expand_paths(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with paths as sections of the configuration, which Spark reads as on the command line."""
    return {name: expand_path(t) if isinstance(t, str | Path) else t for name, t in tables.items()}


def run_on_spark(
    pipeline: Callable[..., Outcome],
    tables: Mapping[str, Any],
    config: Config,
    date: dt.date,
    *,
    spark: SparkSession | None,
    warehouse: str | Path | None,
) -> PublishedRun:
    """Run a pipeline on tables of any kind, into `warehouse` or a working folder.

    Without a session, one is started as for a command, and stopped.
    """
    if spark is None:
        with open_session(config.spark, "assay") as own:
            return run_on_spark(pipeline, tables, config, date, spark=own, warehouse=warehouse)
    storage = Storage(open_working_folder() if warehouse is None else str(warehouse))
    config = config.model_copy(update={"warehouse": storage.uri})
    _ship_packages(spark)
    with _store_frames(spark, tables, storage, date) as frames, _apply_settings(spark):
        outcome = pipeline(spark, config, date, frames=frames)
    return PublishedRun(storage, outcome.manifest, config)


@contextmanager
def _store_frames(
    spark: SparkSession, tables: Mapping[str, Any], storage: Storage, date: dt.date
) -> Iterator[dict[str, DataFrame]]:
    """The tables as DataFrames that are read from files, until the run is done.

    A run reads its inputs several times, and a plan of the caller may be costly or give other rows each time. It is
    computed here, under the settings of the caller.
    """
    name = f"frames-{secrets.token_hex(6)}"
    claim_attempt(storage, date.isoformat(), name)
    try:
        checkpoint = build_checkpointer(storage.path(attempt_path(name)))
        frames = {}
        for table, values in tables.items():
            if not isinstance(values, Mapping):
                with raise_input_errors(f"while reading {table}"):
                    frames[table] = checkpoint(_build_frame(spark, values, table))
        yield frames
    finally:
        remove_attempt(storage, date.isoformat(), name)


def _build_frame(spark: SparkSession, table: Any, name: str) -> DataFrame:
    """A table of any kind as a DataFrame; columns without a type, which no file can hold, become text."""
    from pyspark.sql import functions as F

    frame = table if find_kind(table) == SPARK else spark.createDataFrame(_read_arrow(table, name))
    columns = []
    for field in frame.schema:
        column = F.col(f"`{field.name}`")
        columns.append(column.cast("string").alias(field.name) if field.dataType.typeName() == "void" else column)
    return frame.select(*columns)


def _read_arrow(table: Any, name: str) -> pa.Table:
    """A table in memory in the types that Spark takes."""
    import pyarrow as pa

    reader = TableReader(table, name)
    columns = {column: reader.column(column) for column in reader.names}
    unsigned = {column: values for column, values in columns.items() if pa.types.is_unsigned_integer(values.type)}
    return pa.table(columns | {column: values.cast(pa.int64()) for column, values in unsigned.items()})


def _ship_packages(spark: SparkSession) -> None:
    """Send our packages to workers that have no copy of the project, once per session."""
    if spark not in _shipped:
        folder = tempfile.TemporaryDirectory(prefix="assay-")
        spark.addArtifacts(zip_packages(Path(folder.name)), pyfile=True)
        _shipped[spark] = folder


@contextmanager
def _apply_settings(spark: SparkSession) -> Iterator[None]:
    """Set what our query plans need for the time of a run."""
    needed = {key: value for key, value in REQUIRED.items() if key.startswith("spark.sql.")}
    before = {key: spark.conf.get(key, None) for key in needed}
    for key, value in needed.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        drop_fixed_views(spark)
        for key, former in before.items():
            if former is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, former)
