"""Bound the time of an exchange with a server as a whole, since a timeout of a socket starts again with every byte."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def call_within(seconds: float, function: Callable[[], Answer]) -> Answer:
    """Return what `function` returns, or raise what it raises; `TimeoutError` if it takes longer than `seconds`.

    It runs in a thread that cannot be stopped: after a timeout it goes on, and ends with the process.
    """
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            answers.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="exchange", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError(f"no complete answer within {seconds:g} seconds")
    return answers[0]
