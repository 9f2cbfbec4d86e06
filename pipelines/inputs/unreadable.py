"""Why a file or folder cannot be read, and what to do about it."""

from __future__ import annotations

import codecs
import zlib
from pathlib import Path

import pyarrow as pa

from schemas.errors import InputError

PARQUET = b"PAR1"  # begins and ends a file
PERMIT = "let the user that runs this command read it"


def explain_failure(error: Exception, file: Path) -> tuple[str, str]:
    """What is wrong with a file that cannot be read, and what to do."""
    if isinstance(error, RecursionError):
        return "its values are nested too deeply", "is it Parquet, CSV or JSON?"
    if isinstance(error, PermissionError):
        return "permission denied", PERMIT
    if isinstance(error, UnicodeDecodeError):
        if error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "it is UTF-16", "convert it to UTF-8: iconv -f UTF-16 -t UTF-8"
        return f"it is not UTF-8: {error}", "convert it to UTF-8, as with iconv -f LATIN1 -t UTF-8, or is it Parquet?"
    if isinstance(error, EOFError | zlib.error):
        return f"{error}", "it is damaged or was cut off: copy it again"
    if isinstance(error, pa.ArrowException) and _starts_as_parquet(file):
        return f"{error}", "it is damaged or was cut off: copy it again"
    return str(error), "is it Parquet, CSV or JSON?"


def _starts_as_parquet(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(PARQUET)) == PARQUET
    except OSError:
        return False


def refuse_folder(error: OSError) -> None:
    """Raise what `os.walk` met, which it would skip."""
    raise InputError(f"cannot read the folder: {error.strerror}", where=str(error.filename), hint=PERMIT)
