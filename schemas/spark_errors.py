"""Spark errors in one line, wherever they are in a chain of exceptions."""

from __future__ import annotations

import errno
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from schemas import errors
from schemas.errors import AssayError, InputError, PublishError
from schemas.redact import cut_text

# Error conditions of Spark for data that cannot be read or does not exist.
UNREADABLE = (
    "FAILED_READ_FILE",
    "PATH_NOT_FOUND",
    "UNABLE_TO_INFER_SCHEMA",
    "TABLE_OR_VIEW_NOT_FOUND",
    "UNRESOLVED_COLUMN",
    "PARSE_SYNTAX_ERROR",
    "CANNOT_MERGE_SCHEMAS",
    "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE",
    "COLUMN_ALREADY_EXISTS",
    "MALFORMED_RECORD_IN_PARSING",
    "PARQUET_TYPE",
)
# Hints for conditions that are not a mistake in the configuration.
HINTS = {
    "PARQUET_TYPE": "rewrite it with types that Spark supports; times in microseconds, which pandas does with "
    'to_parquet(…, coerce_timestamps="us")',
    "FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER": "Parquet is read where `format` says nothing else: is it json or csv? "
    "`assay inspect` tells; a Parquet file that was cut off must be copied again",
    "UNABLE_TO_INFER_SCHEMA": "name the folder that has the files: subfolders are read where they are named like "
    "dt=2026-11-01. Or is it json or csv?",
    "CANNOT_MERGE": "write the column with one type in all files, or read the days that agree",
}
_CUT_OFF = "Unexpected end of input stream"  # of a compressed file
_FULL = ("No space left on device", "Disk quota exceeded")
# Parts of Spark that write to its local folders: results of shuffles, spilled rows, cached blocks, copies of our code.
_LOCAL_WRITERS = (
    "org.apache.spark.shuffle.",
    "org.apache.spark.storage.",
    "org.apache.spark.util.collection.",
    "org.apache.spark.SparkContext.addFile(",
    "org.apache.spark.util.Utils$.fetchFile(",
)
_WORKER_FAILED = "An exception was thrown from the Python worker"
_WORKER_DIED = "Python worker exited unexpectedly"
_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (\S+)$', re.MULTILINE)
MAX_MESSAGE = 600  # characters
_CONDITION = re.compile(r"\[([A-Z][A-Z_]{3,}(?:\.[A-Z_]+)*)\]\s*(.*)")
# A device that fails while Java reads a file, or a file that the user may not open; Spark gives no condition for it
# where it reads the footers of files.
_READ_FAILED = re.compile(
    r"java\.io\.(?:IOException|FileNotFoundException): [^\n]*\n(?:\s+at [^\n]*\n){0,2}?"
    r"\s+at java\.base/java\.io\.FileInputStream\."
)
_SCHEMAS = re.compile(
    r'Initial schema:\s*"?STRUCT<([^\n]*)>"?\s*'
    r'Schema that cannot be merged with the initial schema:\s*"?STRUCT<([^\n]*)>'
)
_FIELD = re.compile(r"([^\s,<>:]+): (\w+(?:<[^<>]*>|\([^()]*\))?)")
_PATH = re.compile(r"(?<![\w/])/\w|\w:/")  # of a file; not the slash of "Input/output error"
_CALL_FAILED = "An error occurred while calling "  # what Py4J says of any exception of Java
_CAUSE = re.compile(r"^Caused by: [\w.$]+(?:Exception|Error): (?!\[)(.+)$", re.MULTILINE)


def describe_spark_error(error: Exception) -> tuple[str, str]:
    """The error condition, empty if Spark gives none, and the message with its innermost cause."""
    text = str(error)
    match = _CONDITION.search(text)
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    condition = condition or (match[1] if match else "")
    message = match[2] if match else text.strip().partition("\n")[0]
    message = _describe_difference(text) or message
    causes = _CAUSE.findall(text)
    message = "" if causes and message.startswith(_CALL_FAILED) else message
    return condition, cut_text(" ".join(f"{message} {causes[-1] if causes else ''}".split()), MAX_MESSAGE)


def _describe_difference(text: str) -> str:
    """The columns whose types differ between files, from the two schemas that Spark could not merge; empty without."""
    match = _SCHEMAS.search(text)
    one, other = ({}, {}) if match is None else (dict(_FIELD.findall(match[1])), dict(_FIELD.findall(match[2])))
    differing = [f"{name} is {one[name]} in some and {other[name]} in others" for name in one
                 if other.get(name, one[name]) != one[name]]  # fmt: skip
    return f"the types of files differ: {', '.join(differing)}" if differing else ""


def is_unreadable_input(error: Exception) -> bool:
    """Whether the error is about data that Spark cannot read."""
    return describe_spark_error(error)[0].startswith(UNREADABLE) or _READ_FAILED.search(str(error)) is not None


def raise_cause(error: Exception) -> None:
    """Raise what an error of Spark is about, where that is not the data being written.

    That is an exception of our code in a worker, with its class and exit code where it is one of ours; a worker that
    was killed; Spark's local folder, if it is full; or an input that cannot be read.
    """
    cause = None if isinstance(error, PermissionError) else find_cause(error)  # that one is about the data written
    if cause is not None:
        raise cause from error
    if isinstance(error, AssayError) or is_unreadable_input(error):
        raise error


def find_cause(error: Exception) -> AssayError | None:
    """The error that a user can act on, behind one that Spark or the system reports; None where there is none."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = f"free space there, in the warehouse and in {tempfile.gettempdir()}"
        return PublishError("a disk is full", where=str(error.filename or ""), hint=hint)
    if isinstance(error, PermissionError):
        return InputError(f"permission denied: {error}", hint="let the user that runs this command read it")
    text = str(error)
    if _WORKER_FAILED in text:
        return _describe_worker_error(text.partition(_WORKER_FAILED)[2])
    if _WORKER_DIED in text:
        return AssayError(
            "a Python worker of Spark was killed, most likely for lack of memory",
            hint="use fewer cores at once (spark.master=local[2]), more partitions, or a larger machine",
        )
    if any(full in text for full in _FULL) and any(f"at {writer}" in text for writer in _LOCAL_WRITERS):
        return PublishError(
            "the disk of Spark's local files is full",
            where=", ".join(_list_local_folders()),
            hint="free space there, or set spark.local.dir under spark.settings to a folder on a larger disk",
        )
    return None


def _describe_worker_error(text: str) -> AssayError:
    """The exception at the end of a traceback, as one of ours where it was, else with its place."""
    frames = list(_FRAME.finditer(text))
    # Below a frame are its line of source and marks under it, both indented, then the exception.
    lines = text[frames[-1].end() :].splitlines() if frames else text.splitlines()
    kept = "\n".join(lines[next((at for at, line in enumerate(lines) if line and not line[0].isspace()), 0) :])
    name, _, message = kept.strip().partition(": ")
    own = getattr(errors, name.removeprefix(f"{errors.__name__}."), None)
    if isinstance(own, type) and issubclass(own, AssayError):
        return own(message)
    place = ""
    if frames:
        path, line, function = frames[-1].groups()
        place = f"{'/'.join(path.split('/')[-3:])}, line {line}, in {function}"
    hint = "this is a bug in Assay, not a problem with the data or the warehouse; --debug shows the stack trace"
    return AssayError(cut_text(f"{name}: {message}", MAX_MESSAGE), where=place, hint=hint)


def _list_local_folders() -> list[str]:
    """The folders that Spark writes its own files to on this machine."""
    folders = os.environ.get("SPARK_LOCAL_DIRS") or _read_local_setting() or tempfile.gettempdir()
    return folders.split(",")


def _read_local_setting() -> str | None:
    """The setting of the session; None without one, or where Java has ended, as it may with a full disk."""
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.getActiveSession()
        return None if session is None else session.conf.get("spark.local.dir", None)
    except Exception:
        return None


@contextmanager
def hide_spark_log() -> Iterator[None]:
    """Hide the record, of many thousand characters, that PySpark logs of an error besides raising it."""
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def raise_input_errors(where: str, places: Sequence[str] = ()) -> Iterator[None]:
    """Turn an error about unreadable data into an `InputError` that names the place.

    Java does not always say which file it could not read: then `places` are named, one of which it was.
    """
    try:
        with hide_spark_log():
            yield
    except AssayError:
        raise
    except Exception as error:
        if (cause := find_cause(error)) is not None:
            raise cause from error
        if not is_unreadable_input(error):
            raise
        condition, message = describe_spark_error(error)
        if places and not _PATH.search(message):
            where = f"{where}, in one of {', '.join(places)}"
        hint = next((hint for of, hint in HINTS.items() if condition.startswith(of)), "check path, format and columns")
        hint = "the file was cut off: copy it again" if _CUT_OFF in message else hint
        raise InputError(f"cannot read the data: {message}", where=where, hint=hint) from error
