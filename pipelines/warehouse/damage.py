"""Errors while a published run is read: its files may be damaged, changed by hand, or of another version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from schemas.errors import InputError
from schemas.redact import cut_text

# What code that reads a run raises where a file, a column or a key is missing, or a value is of another kind.
_SYMPTOMS = (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, pa.ArrowException)
MAX_MESSAGE = 300  # characters


@contextmanager
def name_damage(what: str, where: str) -> Iterator[None]:
    """Turn an error of the block into an `InputError` that names what was read."""
    try:
        yield
    except PermissionError:  # which has a message of its own
        raise
    except _SYMPTOMS as error:
        problem = cut_text(" ".join(str(error).split()), MAX_MESSAGE)
        hint = "`assay fsck` checks its files, --debug shows the stack trace; evaluate its date again if it is damaged"
        raise InputError(f"cannot read {what}: {type(error).__name__}: {problem}", where=where, hint=hint) from error
