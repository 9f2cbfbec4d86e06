"""Run independent steps of a run at once: while one plans its query, the tasks of another use the cores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any


def run_concurrently(steps: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run each step in a thread, the last one in this thread, and return their results.

    All steps end before the error of the first one that failed is raised. A signal in this thread is raised at once;
    the jobs of the other threads end with the session.
    """
    results: list[Any] = [None] * len(steps)
    errors: list[Exception | None] = [None] * len(steps)

    def run(number: int) -> None:
        try:
            results[number] = steps[number]()
        except Exception as error:
            errors[number] = error

    threads = [
        threading.Thread(target=run, args=(number,), name=f"step {number}", daemon=True)
        for number in range(len(steps) - 1)
    ]
    for thread in threads:
        thread.start()
    if steps:
        run(len(steps) - 1)
    for thread in threads:
        thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results
