"""Checkpoint tables that several results are computed from: written once as files, read as often as needed.

Not `DataFrame.persist`: Spark prints the plan again at every adaptive step, and a cached table appears in that text
with its whole history, twice for each cached table below it. Printing took minutes where the work took seconds. Files
also survive the loss of an executor. A table of a small run on one machine stays in memory instead: creating a file
takes longer than computing it.
"""

from __future__ import annotations

from itertools import count
from typing import Protocol

from pyspark.sql import DataFrame

from pipelines.warehouse.literal_paths import open_reader


class Checkpointer(Protocol):
    """Compute a table once and return it to be read; its parts by a column can be read apart from each other."""

    def __call__(self, table: DataFrame, partition_by: str | None = None) -> DataFrame: ...


def keep_lazy(table: DataFrame, partition_by: str | None = None) -> DataFrame:
    """Keep nothing: every use computes the table again."""
    return table


def keep_in_memory(table: DataFrame, partition_by: str | None = None) -> DataFrame:
    """Compute a table once and keep its rows in the memory of the session, on its disk where they do not fit."""
    return table.localCheckpoint(eager=True)


def build_checkpointer(folder: str) -> Checkpointer:
    """Return a function that writes a table to a new path under `folder` and returns the table read from there."""
    numbers = count()

    def checkpoint(table: DataFrame, partition_by: str | None = None) -> DataFrame:
        path = f"{folder}/{next(numbers)}"
        table.write.parquet(path, partitionBy=partition_by)
        return open_reader(table.sparkSession).schema(table.schema).parquet(path)

    return checkpoint
