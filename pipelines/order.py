"""Put every list in order: one place per document, from 1 without gaps."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from udfs.conventions import Conventions


def order(rankings: DataFrame, conventions: Conventions) -> DataFrame:
    """Give every document its place in its list.

    The same document may still stand in a list twice. Columns that are not of the ranking are kept.
    """
    score = F.col("score").cast("float") if conventions.order == "score_float32" else F.col("score")
    # Where ranks are given and repeat, as in runs whose ranks are all 0, scores decide before doc_ids do.
    keys = [F.col("rank"), -score] if conventions.order == "rank" else [-score]
    doc = F.asc("doc_id") if conventions.ties == "doc_id_asc" else F.desc("doc_id")
    lists = Window.partitionBy("query_id", "system").orderBy(*[key.asc_nulls_last() for key in keys], doc)
    others = [name for name in rankings.columns if name not in ("rank", "score")]
    return rankings.repartition("query_id").select(*others, F.row_number().over(lists).alias("rank"))
