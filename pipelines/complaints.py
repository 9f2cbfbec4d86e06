"""What Spark complains of, in one line, wherever in a chain of exceptions it is buried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from schemas.errors import AssayError, InputError

# The conditions of Spark that mean: the data, or where it is said to be, cannot be read.
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
# What helps, where more can be said than to look at what was configured.
HINTS = {
    "PARQUET_TYPE": "write it anew with types that Spark has; times in microseconds, which pandas does with "
    'to_parquet(…, coerce_timestamps="us")',
}
_CONDITION = re.compile(r"\[([A-Z][A-Z_]{3,}(?:\.[A-Z_]+)*)\]\s*(.*)")
_CAUSE = re.compile(r"^Caused by: [\w.$]+(?:Exception|Error): (?!\[)(.+)$", re.MULTILINE)


def complaint(error: Exception) -> tuple[str, str]:
    """The condition that Spark named, or nothing, and what it said: the innermost cause with it."""
    text = str(error)
    found = _CONDITION.search(text)
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    condition = condition or (found[1] if found else "")
    said = found[2] if found else text.strip().partition("\n")[0]
    causes = _CAUSE.findall(text)
    return condition, " ".join(f"{said} {causes[-1] if causes else ''}".split())[:600]


def unreadable(error: Exception) -> bool:
    """Whether Spark complains of the data that it reads, rather than of anything else."""
    return complaint(error)[0].startswith(UNREADABLE)


@contextmanager
def input_errors(where: str) -> Iterator[None]:
    """Turn what Spark says about unreadable data into an `InputError` that names the place."""
    try:
        yield
    except AssayError:
        raise
    except Exception as error:
        if not unreadable(error):
            raise
        condition, said = complaint(error)
        hint = next((hint for of, hint in HINTS.items() if condition.startswith(of)), "check path, format and columns")
        raise InputError(f"cannot read the data: {said}", where=where, hint=hint) from error
