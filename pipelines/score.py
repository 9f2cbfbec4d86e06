"""Score every system's lists against the labels, in one pass.

Both sides are partitioned by query once; the join and the aggregations that follow stay within a
partition. Documents travel as 64-bit hashes, which are only ever compared within one query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.order import order
from schemas.outputs import QUERY_METRICS
from schemas.table import Column as Declared
from schemas.table import Table
from udfs.arrow import CONSUMED, COUNTS, DECIDED, DESCRIBED, EARLIER, LABEL_DESCRIBED, LABELLED, RANKED, score_lists
from udfs.conventions import Conventions
from udfs.registry import Spec


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
    return QUERY_METRICS.plus([*cut, *measured])


def score(
    rankings: DataFrame,
    evidence: Evidence,
    *,
    systems: Sequence[str],
    segments: Sequence[str],
    specs: Sequence[Spec],
    conventions: Conventions,
) -> DataFrame:
    """One row per system and query: every metric, and the counts that say what it rests on.

    Every system gets a row for every query that has labels or stands in `queries`, so that a query for
    which it returned nothing is seen; and one for every other query that it ranked or decided on.
    """
    needs = {need for spec in specs for need in spec.metric.needs}
    documents = _described(evidence.documents) if "documents" in needs and evidence.documents is not None else None
    lists = _lists(rankings, documents, conventions)
    joined = _asked(evidence, documents, systems, segments).join(
        lists.hint("shuffle_hash"), ["query_id", "system"], "full"
    )
    if "earlier" in needs:
        handed = lists.where(F.col("system") == F.lit(evidence.earlier))
        joined = joined.join(
            handed.select("query_id", *[F.col(n.removeprefix("earlier_")).alias(n) for n in EARLIER]),
            "query_id",
            "left",
        )
    if "decisions" in needs and evidence.decisions is not None:
        joined = joined.join(_decided(evidence.decisions), ["query_id", "system"], "full")
    table = query_metrics_table(segments, specs)
    carried = ["system", "query_id", "weight", "tied", *segments]
    rows = joined.select(
        "system",
        "query_id",
        F.coalesce("weight", F.lit(1.0)).alias("weight"),
        F.coalesce("tied", F.lit(0)).alias("tied"),
        *segments,
        *[_filled(name) for name in CONSUMED if name in joined.columns],
    )
    made = Table("scored", table.row, tuple(table[n] for n in (*carried, *COUNTS, *[spec.key for spec in specs])))
    return rows.mapInArrow(score_lists([spec.name for spec in specs], conventions), made.struct()).select(*table.names)


def _lists(rankings: DataFrame, documents: DataFrame | None, conventions: Conventions) -> DataFrame:
    """One row per list, its documents as arrays."""
    if documents is not None:
        rankings = rankings.join(documents, "doc_id", "left")
    arrays = {"rank": F.col("rank"), "doc": F.xxhash64("doc_id")} | _descriptions(documents)
    return (
        order(rankings, conventions)
        .groupBy("query_id", "system")
        .agg(
            *[F.collect_list(value).alias(name) for name, value in arrays.items()],
            F.count_if("tied").cast("int").alias("tied"),
        )
    )


def _asked(
    evidence: Evidence, documents: DataFrame | None, systems: Sequence[str], segments: Sequence[str]
) -> DataFrame:
    """One row per system and query that is labelled or listed: its weight, its segments and all its labels."""
    labels = evidence.labels if documents is None else evidence.labels.join(documents, "doc_id", "left")
    described = {f"label_{name}": value for name, value in _descriptions(documents).items()}
    arrays = {"label": F.col("grade"), "label_doc": F.xxhash64("doc_id")} | {
        name: value for name, value in described.items() if name in LABEL_DESCRIBED
    }
    labelled = (
        labels.repartition("query_id")
        .groupBy("query_id")
        .agg(*[F.collect_list(value).alias(name) for name, value in arrays.items()])
    )
    every = F.explode(F.array(*[F.lit(system) for system in systems])).alias("system")
    if evidence.queries is None:
        return labelled.select("*", F.lit(1.0).alias("weight"), every)
    # A query listed twice would be counted twice: one row each, and the same one whatever the order.
    once = evidence.queries.groupBy("query_id").agg(F.min(F.struct("weight", *segments)).alias("of"))
    return labelled.join(once.select("query_id", "of.*"), "query_id", "full").select("*", every)


def _described(documents: DataFrame) -> DataFrame:
    """Per document its category and its share of all popularity; of a document listed twice, one row."""
    once = documents.groupBy("doc_id").agg(F.min("category").alias("category"), F.max("popularity").alias("popularity"))
    total = once.agg(F.sum("popularity").alias("total"))
    return once.crossJoin(F.broadcast(total)).select(
        "doc_id", "category", (F.col("popularity") / F.nullif("total", F.lit(0.0))).alias("popularity")
    )


def _descriptions(documents: DataFrame | None) -> dict[str, Column]:
    """What is told of a document, with nothing left null, since arrays are collected without nulls."""
    if documents is None:
        return {}
    return {"category": _code("category"), "popularity": F.coalesce("popularity", F.lit(float("nan")))}


def _decided(decisions: DataFrame) -> DataFrame:
    """One row per system and query: its decisions as numbers, −1 or NaN where none is known."""
    columns = {name.removeprefix("decided_"): name for name in DECIDED}
    once = decisions.groupBy("query_id", "system").agg(F.min(F.struct(*columns)).alias("of"))
    coded = [
        (_code(f"of.{name}") if name.endswith("expert") else F.col(f"of.{name}").cast("int").cast("double")).alias(made)
        for name, made in columns.items()
    ]
    return once.select("query_id", "system", *coded)


def _code(name: str) -> Column:
    """A text as a number of 63 bits, −1 where there is none."""
    return F.when(F.col(name).isNotNull(), F.shiftrightunsigned(F.xxhash64(name), 1)).otherwise(F.lit(-1))


def _filled(name: str) -> Column:
    """A column of which a full join may have left nulls, with nothing in their place."""
    if name in DECIDED:
        return (
            F.coalesce(name, F.lit(-1 if DECIDED[name] == "bigint" else float("nan"))).cast(DECIDED[name]).alias(name)
        )
    kinds = RANKED | LABELLED | DESCRIBED | LABEL_DESCRIBED | EARLIER
    return F.coalesce(name, F.array().cast(kinds[name])).alias(name)
