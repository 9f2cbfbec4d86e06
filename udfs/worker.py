"""What helps a Python worker of Spark through its many small tasks: without it each takes a fifth of a second more."""

from __future__ import annotations

import gc
import sys
import zipimport
from collections.abc import Callable, Iterable
from functools import cache, wraps
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
