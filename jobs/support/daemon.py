"""The process that forks Python workers on this machine, with the modules of their functions loaded once.

Spark's own daemon forks workers that each import NumPy, pandas, Arrow and our packages, which takes longer than a small
task. Set as `spark.python.daemon.module` for local sessions only: executors of a cluster may not have our packages when
their daemon starts.
"""

from __future__ import annotations

import importlib
from contextlib import suppress

from pyspark.daemon import manager

MODULES = (
    "pyarrow.compute",
    "udfs.spark.crawlers",
    "udfs.spark.prior",
    "udfs.spark.score",
    "udfs.statistics.partial",
    "pipelines.labels.denoise.pairs",
)

if __name__ == "__main__":
    for module in MODULES:
        with suppress(ImportError):  # reported by the task that needs it
            importlib.import_module(module)
    manager()  # type: ignore[no-untyped-call]
