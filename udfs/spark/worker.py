"""Make Python workers of Spark start tasks faster, and read while they compute."""

from __future__ import annotations

import gc
import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from queue import Queue
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")


def run_in_worker(function: Callable[[Iterable[T]], Iterable[T]]) -> Callable[[Iterable[T]], Iterable[T]]:
    """Wrap a function for `DataFrame.mapInArrow` so that it prepares its worker first."""

    @wraps(function)
    def run(batches: Iterable[T]) -> Iterable[T]:
        prepare_worker()
        yield from function(batches)

    return run


def prepare_worker() -> None:
    """Avoid work that Spark makes a worker do between tasks; call it at the start of a worker function."""
    _forget_archives()
    _keep_modules()


def _forget_archives() -> None:
    """Drop the cached directories of zip files on the path; an import that needs one reads it again.

    Before each task Spark invalidates Python's import caches. Before Python 3.12 every cached archive is then read
    again at once, and the largest is Spark itself.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]


@cache  # once per worker, so that garbage of later tasks is still collected
def _keep_modules() -> None:
    """Exclude imported modules from garbage collection, which Spark runs after each task."""
    gc.freeze()


def read_ahead(batches: Iterable[T], most: int = 16) -> Iterator[T]:
    """Yield the batches, reading up to `most` of them in advance.

    Spark sends rows only as fast as they are read; without this, it and Python would take turns waiting.
    """
    waiting: Queue[T | None] = Queue(most)
    failed: list[BaseException] = []
    closed = Event()

    def read() -> None:
        try:
            for batch in batches:
                waiting.put(batch)
                if closed.is_set():
                    return
        except BaseException as error:  # raised again in the consumer
            failed.append(error)
        waiting.put(None)

    Thread(target=read, daemon=True).start()
    try:
        while (batch := waiting.get()) is not None:
            yield batch
    finally:  # after an early stop: make room for one more batch, so that the reader sees the event
        closed.set()
        while not waiting.empty():
            waiting.get()
    if failed:
        raise failed[0]
