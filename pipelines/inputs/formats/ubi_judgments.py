"""The `judgmentRatings` of OpenSearch's Search Relevance Workbench: queries with the ratings of their documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.foreign import normalise_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GRADES = {0: 0, 1: 1, 10: 2, 100: 3}  # by the rating, where ratings are the gains of four grades
_RATINGS = "ARRAY<STRUCT<query: STRING, ratings: ARRAY<STRUCT<docId: STRING, rating: STRING>>>>"
_BODY = f"judgmentRatings {_RATINGS}, _source STRUCT<judgmentRatings: {_RATINGS}>"


def read_judgments(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """One row per rating, of files with one object, or with one per line as in a dump.

    Ratings that are all 0, 1, 10 or 100 are gains, and become the grades 0 to 3; `rating` is the rating as it was.
    """
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    lines = F.split("value", "\n")
    spread = F.get_json_object(lines[0], "$").isNull() & ~lines[0].contains("\t")  # one object over several lines
    objects = F.when(spread, F.array("value")).otherwise(lines)
    entry, item = F.col("entry"), F.col("item")
    body = F.from_json(F.regexp_extract("value", r"(?s)^[^{]*(.*)$", 1), _BODY)
    ratings = F.coalesce(F.col("body")["judgmentRatings"], F.col("body")["_source"]["judgmentRatings"])
    rows = (
        spark.read.text(list(paths), wholetext=True)
        .select(F.explode(objects).alias("value"))
        .where(F.trim("value") != "")
        .select("value", body.alias("body"))
        .select("value", F.explode_outer(ratings).alias("entry"))
        .select("value", "entry", F.explode_outer(entry["ratings"]).alias("item"))
        .select(
            normalise_query(entry["query"]).alias("query_id"),
            item["docId"].alias("doc_id"),
            item["rating"].try_cast("double").alias("rating"),
            F.when(entry.isNull(), F.col("value")).alias(CORRUPT),
        )
    )
    rating = F.col("rating")
    others = rows.agg(F.count_if(~rating.isin(*GRADES)), F.max(rating)).first()
    are_gains = others is not None and others[0] == 0 and (others[1] or 0) > 1
    grades = [F.when(rating == gain, float(grade)) for gain, grade in GRADES.items()] if are_gains else []
    return rows.withColumn("grade", F.coalesce(*grades, rating))
