"""The one family of errors that Assay raises on purpose, each with the exit code of its kind."""

import difflib
from collections.abc import Iterable, Sequence


class AssayError(Exception):
    """Something that a person can mend; the message says what, where, what was allowed, what to do."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "", details: Sequence[str] = ()) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        self.details = details  # lines to be shown before the message
        super().__init__(what + (f" ({where})" if where else "") + (f": {hint}" if hint else ""))


class ConfigurationError(AssayError):
    """The configuration or the command line is wrong; found before a JVM starts."""

    exit_code = 2


class InputError(AssayError):
    """An input is missing, empty or unreadable."""

    exit_code = 3


class DataQualityError(AssayError):
    """The data can be read but must not become a number."""

    exit_code = 4


class PublishError(AssayError):
    """The results could not be written."""

    exit_code = 5


class GateError(AssayError):
    """A release condition was not met."""

    exit_code = 6


class TrackingError(AssayError):
    """Tracking was required and its server could not be reached."""

    exit_code = 7


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The sentence that ends a message about an unknown name: the nearest known one, then the list."""
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return f"{guess}Known: {', '.join(names)}"
