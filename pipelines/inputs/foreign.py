"""What presets share: times of any kind, positions that count from 0 or 1, and the text of a query as its id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.format_registry import FORMATS
from schemas.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NEVER = ("", "null", "undefined", "(not set)")  # what clients log for a value they do not have


# By the ending of a name: the format of the file, JSON for any other.
FILES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv"}


def read_files(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """The rows of a preset's files, in the format that the option `files` or the name of the first file says."""
    kind, settings = find_files(spark, paths, options)
    return FORMATS[kind].find_reader("impressions")(spark, paths, settings)


def find_files(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """The format of a preset's files, and the settings of its reader."""
    kind = options.get("files")
    settings = {"sep": options["sep"]} if "sep" in options else {}
    if kind is None:
        first = next(iter(sorted(spark.read.text(list(paths)).inputFiles())), "")
        name = first.rpartition("/")[2].removesuffix(".gz")
        kind = next((kind for ending, kind in FILES.items() if name.endswith(ending)), "json")
        settings |= {"sep": "\t"} if name.endswith(".tsv") and not settings else {}
    return kind, settings


def require_preset_columns(rows: DataFrame, preset: str, names: Iterable[str]) -> None:
    """Refuse data that is not what a preset reads."""
    missing = [name for name in names if name not in rows.columns]
    if missing:
        columns = ", ".join(name for name in rows.columns if not name.startswith("_"))
        raise InputError(
            f"the data has no column {', '.join(missing)}, which every file of {preset} has",
            where="format",
            hint=f"it has {columns}; `assay inspect` drafts how to read it"
            if columns
            else "its lines are no JSON: is it Parquet or CSV? Say so with options: {files: parquet}",
        )


def parse_micros(value: Column) -> Column:
    """Microseconds since 1970 of ISO text with or without a zone, or of epoch seconds, milli-, micro- or nanoseconds.

    The unit of a number follows from its size: each is right for any time between 1973 and 2286.
    """
    from pyspark.sql import functions as F

    text = F.regexp_replace(F.trim(value), r"([+-]\d\d)(\d\d)$", "$1:$2")  # +0000 is +00:00
    number = F.when(text.rlike(r"^\d+(\.\d+)?$"), text.try_cast("decimal(38,6)"))
    scaled = (
        F.when(number < 1e11, number * 1_000_000)
        .when(number < 1e14, number * 1000)
        .when(number < 1e17, number)
        .otherwise(number / 1000)
    )
    return F.coalesce(scaled.try_cast("bigint"), F.unix_micros(text.try_cast("timestamp")))


def keep_value(value: Column) -> Column:
    """The value as text; null where it is one of those that stand for none."""
    from pyspark.sql import functions as F

    text = F.trim(value)
    return F.when(~F.lower(text).isin(*NEVER), text)


def parse_position(value: Column) -> Column:
    """A whole number, also where it is written as 3.0."""
    from pyspark.sql import functions as F

    number = value.try_cast("double")
    return F.when(number == F.floor(number), number.try_cast("int"))


def normalise_query(text: Column) -> Column:
    """The id of a query: its text in lower case, with single spaces."""
    from pyspark.sql import functions as F

    return keep_value(F.lower(F.regexp_replace(text, r"\s+", " ")))


def derive_id(parts: Iterable[Column]) -> Column:
    """An id for a row that has none; equal rows have equal ids."""
    from pyspark.sql import functions as F

    return F.sha2(F.concat_ws("\x1f", *[F.coalesce(part.cast("string"), F.lit("")) for part in parts]), 256)


def counts_from_zero(zeros: int, ones: int) -> bool:
    """Whether positions count from 0, by how many are 0 and 1.

    The first result is shown at least about as often as the second; fewer zeros are clients that do not know.
    """
    return zeros > 0 and 2 * zeros >= ones
