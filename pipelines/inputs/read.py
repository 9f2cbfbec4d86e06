"""Read the inputs, with a digest of each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pipelines.inputs.format_registry import FORMATS
from pipelines.inputs.listing import FileListing, hash_totals, list_with_spark
from pipelines.inputs.settings import InputSource, RawSource
from pipelines.inputs.shape import add_expressions, filter_rows, run_view
from pipelines.warehouse.catalog.snapshots import read_present_version
from schemas.conform import IGNORED
from schemas.errors import AssayError
from schemas.spark_errors import raise_input_errors


@dataclass(frozen=True)
class InputTable:
    """A table as it was read, and a digest that changes with its data."""

    raw: DataFrame
    places: tuple[str, ...]
    missing_days: tuple[str, ...]
    files: int
    digest: str
    ignored: DataFrame | None = None  # the rows that a preset sorts out, with the reason in `_ignored`
    skipped: tuple[str, ...] = ()  # files and folders beside those that were read
    is_costly: bool = False  # whether a preset joins and sorts a log to read it, so that it should be read once
    file_schema: StructType | None = None  # the columns of its files, before any expression
    is_local: bool = False  # whether its files have been listed without Spark, on this machine


def read_input(
    spark: SparkSession, name: str, source: InputSource, date: dt.date, listing: FileListing | None = None
) -> InputTable:
    """Read the table `name` from its configured source, for the window that ends with `date`.

    `listing` has the files of a path where they have been listed already. The expressions of `columns` are columns of
    the result, named by their text.
    """
    table = _read_view(spark, name, source, date, listing) if source.view else _read(spark, name, source, date, listing)
    return replace(table, raw=add_expressions(table.raw, name, source))


def read_frame(frame: DataFrame, name: str, source: InputSource, date: dt.date) -> InputTable:
    """Take a DataFrame of the caller as the table `name`; its digest is that of its rows, as for a catalog table."""
    with raise_input_errors(f"inputs.{name}: {source.table}"):
        raw = filter_rows(frame, name, source, date)
        digest = hash_totals(*_sum_hashes(raw))
    table = InputTable(raw=raw, places=(str(source.table),), missing_days=(), files=0, digest=digest)
    return replace(table, raw=add_expressions(table.raw, name, source))


def _read_view(
    spark: SparkSession, name: str, source: InputSource, date: dt.date, listing: FileListing | None
) -> InputTable:
    listings = {} if listing is None else listing.parts
    tables = {
        part: _read(spark, f"{name}.sources.{part}", raw, date, listings.get(part))
        for part, raw in source.sources.items()
    }
    view = run_view(spark, name, source, {part: table.raw for part, table in tables.items()}, date)
    return InputTable(
        raw=filter_rows(view, name, source, date),
        places=tuple(place for table in tables.values() for place in table.places),
        missing_days=tuple(sorted({day for table in tables.values() for day in table.missing_days})),
        files=sum(table.files for table in tables.values()),
        digest=hash_totals(*[table.digest for table in tables.values()]),
    )


def _read(spark: SparkSession, name: str, source: RawSource, date: dt.date, listing: FileListing | None) -> InputTable:
    if source.table is not None:
        with raise_input_errors(f"inputs.{name}: table {source.table}"):
            raw = filter_rows(read_present_version(spark, source.table), name, source, date)
            return InputTable(
                raw=raw, places=(source.table,), missing_days=(), files=0, digest=hash_totals(*_sum_hashes(raw))
            )
    is_local = listing is not None
    listing = listing or list_with_spark(spark, name, source, date)
    with raise_input_errors(f"inputs.{name}: {', '.join(listing.places)}"), _locate_key(name):
        read = FORMATS[source.format].find_reader(name)
        rows = read(spark, listing.places, source.options)
        raw = filter_rows(rows, name, source, date)
        kept, ignored = _split_ignored(raw)
    return InputTable(
        raw=kept,
        ignored=ignored,
        is_costly=FORMATS[source.format].readers is not None and name in ("impressions", "interactions"),
        places=listing.places,
        missing_days=listing.missing_days,
        files=listing.files,
        digest=listing.digest,
        skipped=listing.skipped,
        file_schema=rows.schema,
        is_local=is_local,
    )


@contextmanager
def _locate_key(name: str) -> Iterator[None]:
    """Add the input to the key that a preset's error names: a preset does not know which input it reads."""
    try:
        yield
    except AssayError as error:
        if error.where.partition(".")[0] not in RawSource.model_fields:
            raise
        raise type(error)(error.what, where=f"inputs.{name}.{error.where}", hint=error.hint) from error


def read_day(
    spark: SparkSession, name: str, source: InputSource, date: dt.date, listing: FileListing, window: InputTable
) -> DataFrame:
    """Read the files of one day of a window, with the columns that the files of the whole window have."""
    if not listing.files or window.file_schema is None:
        return window.raw.where(F.lit(False))
    with raise_input_errors(f"inputs.{name}: {', '.join(listing.places)}"):
        rows = FORMATS[source.format].find_reader(name)(spark, listing.places, source.options)
        columns = [
            (F.col(f"`{field.name}`") if field.name in rows.columns else F.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in window.file_schema
        ]
        return add_expressions(filter_rows(rows.select(*columns), name, source, date), name, source)


def _split_ignored(raw: DataFrame) -> tuple[DataFrame, DataFrame | None]:
    """The rows to use, and those that a preset ignores."""
    if IGNORED not in raw.columns:
        return raw, None
    return raw.where(F.col(IGNORED).isNull()).drop(IGNORED), raw.where(F.col(IGNORED).isNotNull()).select(IGNORED)


def _sum_hashes(rows: DataFrame) -> tuple[int, int]:
    """The number of rows and the sum of their hashes, which do not depend on their order."""
    texts = F.to_json(F.struct(*[F.col(f"`{name}`") for name in rows.columns]))
    hashes = rows.select(F.xxhash64(texts).cast("decimal(38,0)").alias("hash"))
    totals = hashes.agg(F.count("*"), F.sum("hash")).first()
    return (0, 0) if totals is None else (int(totals[0]), int(totals[1] or 0))
