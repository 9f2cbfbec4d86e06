"""What helps a Python worker of Spark: to be soon ready for its next task, and to work while it reads."""

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


def settled(function: Callable[[Iterable[T]], Iterable[T]]) -> Callable[[Iterable[T]], Iterable[T]]:
    """A function for `DataFrame.mapInArrow`, in a worker that is soon ready for its next task."""

    @wraps(function)
    def run(batches: Iterable[T]) -> Iterable[T]:
        settle()
        yield from function(batches)

    return run


def settle() -> None:
    """Spare this worker what Spark makes it do between two tasks; for use where a function begins."""
    _forget_archives()
    _keep_modules()


def _forget_archives() -> None:
    """Let go of what Python has in mind of zip files among its paths; an import that needs one finds it again.

    Before each task Spark tells Python that files may have changed. Before Python 3.12 every archive in mind is then
    read again at once, and the largest is Spark itself.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]


@cache  # once in the life of a worker: what a task leaves behind shall be found
def _keep_modules() -> None:
    """Set what has been imported apart from what may be garbage: after each task Spark looks through all of that."""
    gc.freeze()


def ahead(batches: Iterable[T], most: int = 16) -> Iterator[T]:
    """The batches, of which up to `most` are read while the ones before are worked on.

    Spark sends rows only as fast as they are read; otherwise it and Python would wait for each other by turns.
    """
    waiting: Queue[T | None] = Queue(most)
    failed: list[BaseException] = []
    unwanted = Event()

    def read() -> None:
        try:
            for batch in batches:
                waiting.put(batch)
                if unwanted.is_set():
                    return
        except BaseException as error:  # it belongs to whoever asked for the batches
            failed.append(error)
        waiting.put(None)

    Thread(target=read, daemon=True).start()
    try:
        while (batch := waiting.get()) is not None:
            yield batch
    finally:  # whoever stops early leaves room for one more batch, after which the reader sees it
        unwanted.set()
        while not waiting.empty():
            waiting.get()
    if failed:
        raise failed[0]
