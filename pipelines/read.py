"""Read the inputs, and take their fingerprints."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.complaints import input_errors
from pipelines.config import Source
from pipelines.formats import formats
from schemas.errors import InputError


@dataclass(frozen=True)
class Input:
    """A table as it was read, and a digest that changes when its data does."""

    raw: DataFrame
    places: tuple[str, ...]
    missing_days: tuple[str, ...]
    files: int
    digest: str


def read(spark: SparkSession, name: str, source: Source, date: dt.date) -> Input:
    """The table `name` from where the configuration says, for the window that ends with `date`."""
    if source.table is not None:
        with input_errors(f"inputs.{name}: table {source.table}"):
            raw = _filtered(spark.table(source.table), source, date)
            return Input(raw, (source.table,), (), 0, _content_digest(raw))
    places = {day.isoformat(): str(source.path).replace("{date}", day.isoformat()) for day in _days(source, date)}
    found, missing = _found(spark, places)
    if found is None or not found.files:
        first, last = min(places.values()), max(places.values())
        dated = "{date}" in str(source.path)
        raise InputError(
            f"{name} has no data for {date}" if dated else f"{name} does not exist or has no files",
            where=f"inputs.{name}: {first}" + ("" if first == last else f" to {last}"),
            hint=f"check inputs.{name}.path" + (" and --date" if dated else ""),
        )
    paths = [place for day, place in places.items() if day not in missing]
    with input_errors(f"inputs.{name}: {', '.join(paths)}"):
        raw = _filtered(formats()[source.format](spark, paths, source.options), source, date)
    return Input(raw, tuple(paths), tuple(missing), found.files, found.digest)


def window(date: dt.date, days: int) -> list[dt.date]:
    """The `days` dates that end with `date`, oldest first."""
    return [date - dt.timedelta(days=back) for back in reversed(range(days))]


def _filtered(raw: DataFrame, source: Source, date: dt.date) -> DataFrame:
    return raw if source.where is None else raw.where(source.where.replace("{date}", date.isoformat()))


def _days(source: Source, date: dt.date) -> list[dt.date]:
    return window(date, source.days) if "{date}" in str(source.path) else [date]


@dataclass(frozen=True)
class _Files:
    files: int
    digest: str


def _found(spark: SparkSession, places: Mapping[str, str]) -> tuple[_Files | None, list[str]]:
    """The files at those of `places` that exist, and the days of those that do not."""
    listed = _listed(spark, list(places.values()))
    if listed is not None:
        return listed, []
    there = {day: place for day, place in places.items() if len(places) > 1 and _listed(spark, [place]) is not None}
    return _listed(spark, list(there.values())) if there else None, [day for day in places if day not in there]


def _listed(spark: SparkSession, paths: list[str]) -> _Files | None:
    """The data files under `paths`, by name, length and time; their content is not read."""
    try:
        every = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(paths)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    files, total = _summed(every.select("path", "length", "modificationTime"))
    return _Files(files, _short(f"{files} {total}"))


def _content_digest(raw: DataFrame) -> str:
    return _short(" ".join(map(str, _summed(raw))))


def _summed(rows: DataFrame) -> tuple[int, int]:
    """How many rows there are, and the sum of their hashes: one number each, whatever their order."""
    texts = F.to_json(F.struct(*[F.col(f"`{name}`") for name in rows.columns]))
    found = rows.select(F.xxhash64(texts).cast("decimal(38,0)").alias("hash")).agg(F.count("*"), F.sum("hash")).first()
    return (0, 0) if found is None else (int(found[0]), int(found[1] or 0))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
