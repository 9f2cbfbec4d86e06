"""The errors that Assay raises on purpose, each kind with its exit code."""

import difflib
from collections.abc import Iterable, Sequence

from schemas.printable import escape_line
from schemas.redact import redact_text


class AssayError(Exception):
    """An error that the user can fix; the message says what is wrong, where, and what to do, without secrets."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "", details: Sequence[str] = ()) -> None:
        self.what = redact_text(what)
        self.where = redact_text(where)
        self.hint = redact_text(hint)
        self.details = details  # lines to print before the message
        super().__init__(self.what + (f" ({self.where})" if where else "") + (f": {self.hint}" if hint else ""))


class ConfigurationError(AssayError):
    """The configuration or the command line is wrong; raised before a JVM starts."""

    exit_code = 2


class InputError(AssayError):
    """An input is missing, empty or unreadable."""

    exit_code = 3


class DataQualityError(AssayError):
    """The data can be read but fails its checks."""

    exit_code = 4


class PublishError(AssayError):
    """The results could not be written."""

    exit_code = 5


class UnknownOutcomeError(PublishError):
    """The results may have been published: the store did not answer."""


class GateError(AssayError):
    """A release condition was not met."""

    exit_code = 6


class TrackingError(AssayError):
    """Tracking was required and its server could not be reached."""

    exit_code = 7


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """The hint about an unknown name: the closest choice, then all of them."""
    names = sorted(choices)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    listed = ", ".join(map(escape_line, names))  # they may come from data
    return f"did you mean {close[0]!r}? Known: {listed}" if close else f"choose from {listed}"
