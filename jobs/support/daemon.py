"""The process that forks Python workers on this machine, with the modules of their functions loaded once.

Spark's own daemon forks workers that each import NumPy, pandas, Arrow and our packages, which takes longer than a small
task. Set as `spark.python.daemon.module` for local sessions only: executors of a cluster may not have our packages when
their daemon starts.
"""

from __future__ import annotations

import gc
import importlib
import sys
import sysconfig
import traceback
from contextlib import suppress
from types import SimpleNamespace

MODULES = (
    "pyarrow.compute",
    "udfs.spark.crawlers",
    "udfs.spark.prior",
    "udfs.spark.score",
    "udfs.spark.worker_table",
    "udfs.statistics.partial",
    "pipelines.labels.denoise.pages",
    "pipelines.labels.denoise.pairs",
    "pipelines.labels.denoise.users",
)


def drop_archives(paths: list[str], packages: str) -> list[str]:
    """The paths without the archives of PySpark that stand beside the same modules in the folder `packages`.

    Spark puts them first. They hold sources only, so that each process would compile them again, and every task would
    read their listings.
    """
    return [path for path in paths if not (path.startswith(packages) and path.endswith(".zip"))]


def print_exception() -> None:
    """Print the stack trace of a worker, unless it only says that Spark has closed the connection of an ended task."""
    if not isinstance(sys.exc_info()[1], ConnectionError):
        traceback.print_exc()


if __name__ == "__main__":
    sys.path[:] = drop_archives(sys.path, sysconfig.get_path("purelib"))
    from pyspark import daemon

    daemon.traceback = SimpleNamespace(print_exc=print_exception, format_exc=traceback.format_exc)  # type: ignore
    gc.disable()  # nothing of what is imported is garbage
    for module in MODULES:
        with suppress(ImportError):  # reported by the task that needs it
            importlib.import_module(module)
    gc.freeze()  # a worker would copy each page of memory whose objects it looks through
    gc.enable()
    daemon.manager()  # type: ignore[no-untyped-call]
