"""Signals: Ctrl-C and SIGTERM unwind the stack once, so that an unfinished attempt is removed."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_received: list[int] = []
_catching = threading.Event()  # during a command, not where our code is used as a library


class Interrupted(BaseException):
    """A signal asked the process to end; not an `Exception`, so that nothing on the way handles it."""


def received_signal() -> int | None:
    """Return the signal that interrupted the command; None if there was none."""
    return _received[0] if _received else None


def install_handlers() -> None:
    """Install our handlers; again after Spark has started, which installs its own.

    Spark's calls Java from within the interrupted call to Java, and both then read the wrong answers.
    """
    if _catching.is_set() and threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, _interrupt)


@contextmanager
def catch_signals() -> Iterator[None]:
    """Handle signals during a command."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    _received.clear()
    _catching.set()
    install_handlers()
    try:
        yield
    finally:
        _catching.clear()
        for number, handler in before.items():
            signal.signal(number, handler)
        if _received:
            logging.disable(logging.NOTSET)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # a second one would interrupt the cleanup
    _received.append(number)
    logging.disable(logging.CRITICAL)  # what breaks on the way out is no news
    raise Interrupted
