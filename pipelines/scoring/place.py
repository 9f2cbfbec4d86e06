"""The documents of every list at the ranks they are scored at."""

from __future__ import annotations

from pyspark.sql import DataFrame

from udfs.conventions import Conventions
from udfs.spark.place import place_rows
from udfs.spark.worker import run_in_worker

PLACED = "system string, query_id string, doc_id string, rank int"


def place_documents(rankings: DataFrame, conventions: Conventions) -> DataFrame:
    """Order every list and drop its duplicates by the code that scores it; ranks count from 1 without gaps."""
    rows = rankings.select("system", "query_id", "doc_id", "rank", "score").repartition("query_id")
    return rows.mapInArrow(run_in_worker(place_rows(conventions)), PLACED)
