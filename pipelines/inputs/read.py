"""Read the inputs, with a digest of each."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.inputs.format_registry import FORMATS
from pipelines.inputs.listing import FileListing, hash_totals, list_with_spark
from pipelines.inputs.settings import InputSource
from schemas.spark_errors import raise_input_errors


@dataclass(frozen=True)
class InputTable:
    """A table as it was read, and a digest that changes with its data."""

    raw: DataFrame
    places: tuple[str, ...]
    missing_days: tuple[str, ...]
    files: int
    digest: str


def read_input(
    spark: SparkSession, name: str, source: InputSource, date: dt.date, listing: FileListing | None = None
) -> InputTable:
    """Read the table `name` from its configured source, for the window that ends with `date`.

    `listing` has the files of a path where they have been listed already.
    """
    if source.table is not None:
        with raise_input_errors(f"inputs.{name}: table {source.table}"):
            raw = _filter_rows(spark.table(source.table), source, date)
            return InputTable(
                raw=raw, places=(source.table,), missing_days=(), files=0, digest=hash_totals(*_sum_hashes(raw))
            )
    listing = listing or list_with_spark(spark, name, source, date)
    with raise_input_errors(f"inputs.{name}: {', '.join(listing.places)}"):
        raw = _filter_rows(FORMATS[source.format](spark, listing.places, source.options), source, date)
    return InputTable(
        raw=raw,
        places=listing.places,
        missing_days=listing.missing_days,
        files=listing.files,
        digest=listing.digest,
    )


def _filter_rows(raw: DataFrame, source: InputSource, date: dt.date) -> DataFrame:
    return raw if source.where is None else raw.where(source.where.replace("{date}", date.isoformat()))


def _sum_hashes(rows: DataFrame) -> tuple[int, int]:
    """The number of rows and the sum of their hashes, which do not depend on their order."""
    texts = F.to_json(F.struct(*[F.col(f"`{name}`") for name in rows.columns]))
    hashes = rows.select(F.xxhash64(texts).cast("decimal(38,0)").alias("hash"))
    totals = hashes.agg(F.count("*"), F.sum("hash")).first()
    return (0, 0) if totals is None else (int(totals[0]), int(totals[1] or 0))
