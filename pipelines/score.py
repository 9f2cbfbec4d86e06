"""Score every system's lists against the labels, in one pass.

All that is known of a query, its lists, labels, weight, segments and decisions, is brought together by one
shuffle and handed to Python as it stands: no join, no sorting and no arrays in the JVM. Rows of all kinds share five
columns, since every further one is carried by all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.outputs import QUERY_METRICS
from schemas.table import Column as Declared
from schemas.table import Table
from udfs.arrow import DECIDED, DECISION, LABEL, QUERY, Wanted, score_queries
from udfs.conventions import Conventions
from udfs.registry import POOL, Spec
from udfs.worker import settled

ROWS_PER_PARTITION = 2_000_000  # what a Python worker holds at once, in about 0.7 GB
ROWS_PER_TASK = 400_000  # what a task should have where all cores have one: each takes a while to begin
ROWS_WORTH_A_TASK = 100_000  # fewer are not worth one, even where a core has nothing else to do


@dataclass(frozen=True)
class Evidence:
    """The tables that lists are scored by; `earlier` names the system whose lists an earlier stage hands over."""

    labels: DataFrame
    queries: DataFrame | None = None
    documents: DataFrame | None = None
    decisions: DataFrame | None = None
    earlier: str | None = None


def query_metrics_table(segments: Sequence[str], specs: Sequence[Spec]) -> Table:
    """The contract of `query_metrics` for these segments and metrics."""
    cut = [Declared(name, "string", "a segment", nullable=True) for name in segments]
    measured = [Declared(spec.key, "double", spec.metric.summary, nullable=True) for spec in specs]
    pooled = [
        Declared(spec.key + POOL, "double", f"what {spec.name} was divided by", nullable=True)
        for spec in specs
        if spec.metric.pool is not None
    ]
    return QUERY_METRICS.plus([*cut, *measured, *pooled])


def score(
    rankings: DataFrame,
    evidence: Evidence,
    *,
    systems: Sequence[str],
    segments: Sequence[str],
    specs: Sequence[Spec],
    conventions: Conventions,
    rows: int = 0,
) -> DataFrame:
    """One row per system and query: every metric, and the counts that say what it rests on.

    Every system gets a row for every query that has labels or stands in `queries`, so that a query for
    which it returned nothing is seen; and one for every other query that it ranked or decided on. `rows` is how
    many rows all tables have together, as far as that is known.
    """
    needs = {need for spec in specs for need in spec.metric.needs}
    documents = _described(evidence.documents) if "documents" in needs and evidence.documents is not None else None
    parts = [_ranked(rankings, documents, systems), _labelled(evidence.labels, documents)]
    if evidence.queries is not None:
        parts.append(
            evidence.queries.select("query_id", _source(QUERY), _line(segments), F.col("weight").alias("value"))
        )
    if "decisions" in needs and evidence.decisions is not None:
        parts.append(_decided(evidence.decisions, systems))
    together = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), parts)
    table = query_metrics_table(segments, specs)
    wanted = Wanted(
        tuple(spec.name for spec in specs),
        conventions,
        tuple(systems),
        tuple(segments),
        tuple(table.names),
        evidence.earlier if "earlier" in needs else None,
    )
    met = _met(together, rows)
    return met.mapInArrow(settled(score_queries(wanted)), table.struct()).select(*table.names)


def _met(together: DataFrame, rows: int) -> DataFrame:
    """The rows of each query in one partition: as many as usual, fewer for few rows, more for very many.

    Where the number of rows is unknown, Spark chooses by their size; the two or three partitions that it makes of
    what looks small to it would keep some cores waiting for others.
    """
    if not rows:
        return together.repartition("query_id")
    spark = together.sparkSession
    usual = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    busy = min(spark.sparkContext.defaultParallelism, ceil(rows / ROWS_WORTH_A_TASK))
    enough = min(max(ceil(rows / ROWS_PER_TASK), busy), usual)
    return together.repartition(max(enough, ceil(rows / ROWS_PER_PARTITION)), "query_id")


def _ranked(rankings: DataFrame, documents: DataFrame | None, systems: Sequence[str]) -> DataFrame:
    """The rows of ranked lists; those of systems that nobody asked for are left out."""
    if documents is not None:
        rankings = rankings.join(documents, "doc_id", "left")
    return rankings.where(F.col("system").isin(*systems)).select(
        "query_id",
        _place(systems).alias("source"),
        F.col("doc_id").alias("text"),
        "rank",
        F.col("score").alias("value"),
        *_descriptions(documents),
    )


def _labelled(labels: DataFrame, documents: DataFrame | None) -> DataFrame:
    if documents is not None:
        labels = labels.join(documents, "doc_id", "left")
    return labels.select(
        "query_id",
        _source(LABEL),
        F.col("doc_id").alias("text"),
        F.col("grade").alias("value"),
        *_descriptions(documents),
    )


def _decided(decisions: DataFrame, systems: Sequence[str]) -> DataFrame:
    """The decisions of the systems that were asked for."""
    asked = decisions.where(F.col("system").isin(*systems))
    return asked.select("query_id", (F.lit(DECISION) - _place(systems)).alias("source"), _line(list(DECIDED)))


def _source(kind: int) -> Column:
    return F.lit(kind).alias("source")


def _line(columns: Sequence[str]) -> Column:
    """The columns as a line of JSON."""
    told = F.to_json(F.struct(*columns)) if columns else F.lit("{}")
    return F.concat(told, F.lit("\n")).alias("text")


def _place(systems: Sequence[str]) -> Column:
    """The place of the system among `systems`."""
    place = F.when(F.col("system") == systems[0], 0)
    for at, system in enumerate(systems[1:], start=1):
        place = place.when(F.col("system") == system, at)
    return place


def _described(documents: DataFrame) -> DataFrame:
    """Per document its category and its share of all popularity; of a document listed twice, one row."""
    once = documents.groupBy("doc_id").agg(F.min("category").alias("category"), F.max("popularity").alias("popularity"))
    total = once.agg(F.sum("popularity").alias("total"))
    return once.crossJoin(F.broadcast(total)).select(
        "doc_id", "category", (F.col("popularity") / F.nullif("total", F.lit(0.0))).alias("popularity")
    )


def _descriptions(documents: DataFrame | None) -> list[Column]:
    """What is told of a document: its category as a number of 63 bits, −1 where it has none, and its popularity."""
    if documents is None:
        return []
    category = F.when(F.col("category").isNotNull(), F.shiftrightunsigned(F.xxhash64("category"), 1))
    popularity = F.coalesce("popularity", F.lit(float("nan")))
    return [F.coalesce(category, F.lit(-1)).alias("category"), popularity.alias("popularity")]
