"""The doors to the terminal: what is printed has no secrets, and nothing from the data that controls a terminal."""

from __future__ import annotations

import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from schemas.printable import escape_line, escape_unprintable
from schemas.redact import redact_text

if TYPE_CHECKING:
    from rich.console import Console


_LONGEST = 100_000  # characters of a line that are kept until it ends
_UNLIMITED = 10_000  # columns of output that is piped; tables are as wide as they need


def make_safe(text: str) -> str:
    """Hide secrets and escape control characters; line breaks stay."""
    return escape_unprintable(redact_text(text))


def echo_line(text: str) -> None:
    """Print one line, whatever the data in it contains."""
    click.echo(escape_line(text))


class SafeStream:
    """A text stream that makes everything safe that is written to it, also by libraries.

    A line is written when it ends or is flushed: `print("token:", token)` writes the name and the secret one by one.
    """

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream
        self._line = ""  # without its end yet
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        with self._lock:
            whole, end, self._line = (self._line + text).rpartition("\n")
            if "-----BEGIN" in whole:  # a key goes on after the last line break
                whole, end, self._line = whole + end + self._line, "", ""
            if whole or end:
                self.raw.write(make_safe(whole + end))
            if len(self._line) > _LONGEST:
                self.finish_line()
        return len(text)

    def finish_line(self) -> None:
        """Write the line that has not ended."""
        with self._lock:
            line, self._line = self._line, ""
            if line:
                self.raw.write(make_safe(line))

    def flush(self) -> None:
        self.finish_line()
        self.raw.flush()

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> SafeBytes:
        return SafeBytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


class SafeBytes:
    """The binary side of a safe stream: bytes are text in UTF-8."""

    def __init__(self, stream: SafeStream) -> None:
        self._stream = stream

    def write(self, content: bytes) -> int:
        self._stream.write(content.decode("utf-8", "replace"))
        return len(content)

    def flush(self) -> None:
        self._stream.flush()


@contextmanager
def guard_streams() -> Iterator[None]:
    """Make standard output and standard error safe."""
    out, err = sys.stdout, sys.stderr
    guarded = SafeStream(out), SafeStream(err)
    sys.stdout, sys.stderr = guarded
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
        for stream in guarded:
            stream.finish_line()


def open_console(*, stderr: bool = False, wide: bool = False) -> Console:
    """Open a console of rich; `wide` makes it as wide as its tables need where there is no terminal.

    It makes the text safe that it is given, and writes its own colours past the guarded streams.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text

    class SafeConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(make_safe(text), **options)

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Any:
            if isinstance(renderable, Text) and make_safe(renderable.plain) != renderable.plain:
                renderable = Text(make_safe(renderable.plain), style=renderable.style)
            rendered: Iterator[Segment] = iter(super().render(renderable, options))
            return rendered

    stream = sys.stderr if stderr else sys.stdout
    raw = stream.raw if isinstance(stream, SafeStream) else stream
    width = _UNLIMITED if wide and not raw.isatty() else None
    return SafeConsole(file=raw, stderr=stderr, width=width, highlight=False, emoji=False)


def print_line(console: Console, text: str) -> None:
    """Print one line on a console, without markup, whatever the data in it contains; too long a line is wrapped."""
    line = escape_line(text)
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    wrapped = textwrap.wrap(
        line, console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    for part in wrapped or [""]:
        console.print(part, highlight=False, soft_wrap=True, markup=False)
