"""Score everything that a system shows, rather than single lists."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.scoring.place import place_documents
from schemas.outputs import SEGMENT_METRICS
from udfs.conventions import Conventions
from udfs.registry import MetricSpec
from udfs.spark.systems import name_top, score_system
from udfs.statistics.plan import EVERYTHING

SCORED = "system string, metric string, macro double, queries bigint"


def score_systems(
    rankings: DataFrame, documents: DataFrame, *, specs: Sequence[MetricSpec], conventions: Conventions
) -> DataFrame:
    """One row of `segment_metrics` per system and metric of scope `system`; `documents` is the catalogue."""
    cuts = dict.fromkeys(spec.k for spec in specs)
    tops = [(F.count("*") if k is None else F.count_if(F.col("rank") <= k)).alias(name_top(k)) for k in cuts]
    catalogue = documents.select("doc_id").distinct()
    size = catalogue.agg(F.count("*").alias("catalogue_size"))
    lists = rankings.groupBy("system").agg(F.count_distinct("query_id").alias("lists"))
    shown = (
        place_documents(rankings, conventions)
        .groupBy("system", "doc_id")
        .agg(*tops)
        .join(catalogue.withColumn("in_catalogue", F.lit(True)), "doc_id", "left")
        .withColumn("in_catalogue", F.coalesce("in_catalogue", F.lit(False)))
        .join(F.broadcast(lists), "system")
        .crossJoin(F.broadcast(size))
    )
    names = F.create_map(*[F.lit(text) for spec in specs for text in (spec.key, spec.name)])
    scored = (
        shown.groupBy("system")
        .applyInArrow(score_system(specs, conventions), SCORED)
        .withColumns({"segment": F.lit(EVERYTHING), "value": F.lit(EVERYTHING), "skipped": F.lit(0).cast("bigint")})
        .withColumn("metric_name", names[F.col("metric")])
    )
    # One number for a whole system has no weights and no confidence interval.
    return scored.select(
        *[
            c.name if c.name in scored.columns else F.lit(None).cast(c.type).alias(c.name)
            for c in SEGMENT_METRICS.columns
        ]
    )
