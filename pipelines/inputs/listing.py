"""List the files of an input with a digest of them; on a local disk without Spark.

Spark and Python list the same files and give the same digest, so that a run is found again however its inputs were
listed.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.inputs.format_registry import FORMATS
from pipelines.inputs.settings import InputSource, RawSource
from schemas.errors import ConfigurationError, InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A path without a scheme may lead elsewhere where one of these configures Hadoop.
HADOOP_VARIABLES = (
    "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT",
)  # fmt: skip
_PATTERN = frozenset("*?[]{}\\")  # Spark expands them
_DIGITS = 15  # hexadecimal, of the hash of a file: they fit a long
_FIRST = 16  # characters of a digest
_MAX_SKIPPED = 20
_MARKER = re.compile(r"_(SUCCESS|started_.*|committed_.*|temporary|delta_log)|\.DS_Store|\..*\.crc|.*\._COPYING_")


@dataclass(frozen=True)
class FileListing:
    """The files of an input: the places that exist, the days without one, and a digest of names, sizes and times."""

    places: tuple[str, ...]
    missing_days: tuple[str, ...]
    files: int
    bytes: int
    digest: str
    parts: Mapping[str, FileListing] = field(default_factory=dict)  # of a view: the listing of each source
    skipped: tuple[str, ...] = field(default=(), compare=False)  # files and folders that Spark ignores; local ones only


@dataclass(frozen=True)
class _FileTotals:
    files: int
    bytes: int
    hashes: int  # their sum, which does not depend on the order of the files


def window_dates(date: dt.date, days: int) -> list[dt.date]:
    """The `days` dates that end with `date`, oldest first."""
    if days > date.toordinal():
        hint = "check --date and the days of the input"
        raise ConfigurationError(f"the calendar has no {days:,} days that end with {date}", hint=hint)
    return [date - dt.timedelta(days=back) for back in reversed(range(days))]


def list_locally(name: str, source: RawSource, date: dt.date, *, required: bool = True) -> FileListing | None:
    """List the files of an input without Spark; None where only Spark can tell what its path leads to.

    An input without files is an error where it is `required`.
    """
    if source.table is not None:
        return None
    if isinstance(source, InputSource) and source.view is not None:
        parts = {part: list_locally(f"{name}.sources.{part}", raw, date) for part, raw in source.sources.items()}
        listed = {part: listing for part, listing in parts.items() if listing is not None}
        return _combine(listed) if len(listed) == len(parts) else None
    places = _locate_days(source, date)
    paths = {place: _resolve_local(place) for place in places}
    if not all(paths.values()):
        return None
    try:
        existing = {place: path for place, path in paths.items() if path and _exists(path)}
        totals = _sum_local(list(existing.values()))
        skipped = tuple(islice(_list_skipped(source, existing.values()), _MAX_SKIPPED))
    except PermissionError as error:
        raise InputError(
            f"{error.filename} cannot be read: permission denied",
            where=f"inputs.{name}",
            hint="let the user that runs this command read it, and every folder above it",
        ) from None
    except UnicodeEncodeError as error:
        raise InputError(
            f"the name of a file is not UTF-8, so that Java cannot open it: {error.object!r}",
            where=f"inputs.{name}",
            hint="rename it",
        ) from None
    except OSError:  # Spark reports what cannot be read
        return None
    return _describe(name, source, date, places, list(existing), totals, skipped, required=required)


def list_with_spark(
    spark: SparkSession, name: str, source: RawSource, date: dt.date, *, required: bool = True
) -> FileListing:
    """List the files of a path with Spark, which knows every file system."""
    places = _locate_days(source, date)
    existing = list(places)
    totals = _sum_with_spark(spark, existing)
    if totals is None:
        existing = [p for p in places if len(places) > 1 and _sum_with_spark(spark, [p]) is not None]
        totals = _sum_with_spark(spark, existing) if existing else None
    return _describe(name, source, date, places, existing, totals or _FileTotals(0, 0, 0), required=required)


def _combine(parts: Mapping[str, FileListing]) -> FileListing:
    """The listing of a view: the files of all its sources."""
    return FileListing(
        places=tuple(place for part in parts.values() for place in part.places),
        missing_days=tuple(sorted({day for part in parts.values() for day in part.missing_days})),
        files=sum(part.files for part in parts.values()),
        bytes=sum(part.bytes for part in parts.values()),
        digest=hash_totals(*[part.digest for part in parts.values()]),
        parts=parts,
    )


def hash_totals(*parts: object) -> str:
    """Return the digest of a number of rows or files and the sum of their hashes."""
    return hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()[:_FIRST]


def _locate_days(source: RawSource, date: dt.date) -> dict[str, str]:
    """The places of the window, each with its day; a path without a date has one place."""
    return {
        path.replace("{date}", day.isoformat()): day.isoformat()
        for path in source.paths
        for day in (window_dates(date, source.days) if "{date}" in path else [date])
    }


def _describe(
    name: str,
    source: RawSource,
    date: dt.date,
    places: Mapping[str, str],
    existing: Sequence[str],
    totals: _FileTotals,
    skipped: tuple[str, ...] = (),
    *,
    required: bool = True,
) -> FileListing:
    missing = [place for place in places if place not in existing]
    fixed = [place for place in missing if place in source.paths]  # without a date in it
    if required and (fixed or not totals.files):
        dated = "{date}" in "".join(source.paths) and not fixed
        first, last = min(fixed or places), max(fixed or places)
        raise InputError(
            f"{name} has no data for {date}" if dated else f"{name} does not exist or has no files",
            where=f"inputs.{name}: {first}" + ("" if first == last else f" to {last}"),
            hint=f"check inputs.{name}.path"
            + (" and --date" if dated else "")
            + (f"; Spark ignores {skipped[0]}" if skipped else ""),
        )
    return FileListing(
        places=tuple(place for place in places if place in existing),
        missing_days=tuple(dict.fromkeys(places[place] for place in missing)),
        files=totals.files,
        bytes=totals.bytes,
        digest=hash_totals(totals.files, totals.hashes),
        skipped=skipped,
    )


def _resolve_local(place: str) -> str | None:
    """The absolute path of a place on a local disk; None where it is elsewhere, or Spark has to say."""
    if _PATTERN & set(place):
        return None
    if place.startswith("file:/"):
        return os.path.normpath("/" + place.removeprefix("file:").lstrip("/"))
    if "://" in place or any(name in os.environ for name in HADOOP_VARIABLES):
        return None
    return str(Path(os.path.normpath(place)).absolute())


def _exists(path: str) -> bool:
    """Whether there is such a file, folder or link; unlike Python's own, it raises where that cannot be seen."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _sum_local(paths: Sequence[str]) -> _FileTotals:
    files = size = hashes = 0
    for path in paths:
        for name, status in _walk(path):
            name.encode()  # raises where Java could not open it
            text = f"file:{name}\n{status.st_size}\n{status.st_mtime_ns // 10**6}"
            os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK))  # raises where it may not be read
            hashes += int(hashlib.sha256(text.encode()).hexdigest()[:_DIGITS], 16)
            files, size = files + 1, size + status.st_size
    return _FileTotals(files, size, hashes)


def _walk(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the data files under a path."""
    status = Path(path).stat()
    if not stat.S_ISDIR(status.st_mode):
        if not _is_hidden(Path(path).name):
            yield path, status
        return
    for folder, folders, names in os.walk(path, followlinks=True, onerror=_raise):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            if not _is_hidden(name):
                yield f"{folder}/{name}", Path(folder, name).stat()


def _list_skipped(source: RawSource, paths: Iterable[str]) -> Iterator[str]:
    """List the files and folders under paths that are not read, without the marks that writers leave.

    Hidden ones are not, and neither are folders that are no partitions (`key=value`), unless they are read recursively.
    A preset chooses its files itself.
    """
    recursive = source.options.get("recursiveFileLookup", "").lower() == "true"
    folders_of_data = [path for path in paths if Path(path).is_dir() and FORMATS[source.format].readers is None]
    walks = (os.walk(path, followlinks=True, onerror=_raise) for path in folders_of_data)
    for folder, folders, names in chain.from_iterable(walks):
        unread = [name for name in folders if _is_hidden(name) or not (recursive or "=" in name)]
        folders[:] = [name for name in folders if name not in unread]
        ignored = [*(name for name in names if _is_hidden(name)), *(f"{name}/" for name in unread)]
        yield from (f"{folder}/{name}" for name in sorted(ignored) if not _MARKER.fullmatch(name.rstrip("/")))


def _raise(error: OSError) -> None:
    raise error


def _is_hidden(name: str) -> bool:
    """Whether Spark ignores a file or folder of this name."""
    if name.startswith(("_metadata", "_common_metadata")):
        return False
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _sum_with_spark(spark: SparkSession, paths: list[str]) -> _FileTotals | None:
    """The totals of the data files under `paths`; None where a path does not exist."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    try:
        every = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(paths)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    text = F.concat_ws("\n", "path", F.col("length").cast("string"), F.unix_millis("modificationTime").cast("string"))
    number = F.conv(F.substring(F.sha2(text, 256), 1, _DIGITS), 16, 10).cast("decimal(38,0)")
    totals = every.agg(F.count("*"), F.sum("length"), F.sum(number)).first()
    return _FileTotals(*[int(total or 0) for total in totals]) if totals is not None else None
