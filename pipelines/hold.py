"""Hold tables that several results are made from: written once as files, and read as often as needed.

Not `DataFrame.persist`. Spark spells a plan out whenever it learns more about it, and a table that is held in memory
stands in that text with its whole history, twice, once more for each table in memory that it was made from: spelling
took minutes where the work took seconds. Files also outlive an executor that is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from pyspark.sql import DataFrame

Keep = Callable[[DataFrame], DataFrame]


def held_in(folder: str) -> Keep:
    """A function that writes a table into a new place under `folder` and answers what reads it from there."""
    places = count()

    def keep(table: DataFrame) -> DataFrame:
        place = f"{folder}/{next(places)}"
        table.write.parquet(place)
        return table.sparkSession.read.schema(table.schema).parquet(place)

    return keep
