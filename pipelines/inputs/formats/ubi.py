"""OpenSearch User Behavior Insights (UBI): one export of searches and events becomes the tables of a log.

A line is a document of `ubi_queries` or `ubi_events`: of a bulk file (its action lines are skipped), after the name of
its index and a tab, in the `_source` of a dump, or a row of CSV. UBI's `query_id` is one execution and becomes
`serp_id`; `query_id` is the normalised `user_query`; the user is the `client_id`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.foreign import derive_id, keep_value
from pipelines.inputs.format_registry import register_preset
from pipelines.inputs.formats.ubi_export import SHOWN, assign_searches, find_rules, read_documents
from pipelines.inputs.formats.ubi_judgments import read_judgments

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def read_impressions(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """One row per result of a page, from the events that log it, or else from the ids of the response.

    An event of kind `impression` is usually sent when a result scrolls into view. A page with such events has their
    results, and those that were used all the same; a page without them has its whole response.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT, IGNORED

    documents = read_documents(spark, paths, options)
    page = Window.partitionBy("serp_id")
    search, result = F.col("search"), F.col("result")
    results = assign_searches(documents, find_rules(documents, options)).where(
        search.isNotNull() & F.col("wrong_field").isNull()
    )
    pages = (
        results.select("serp_id", "search", "user_agent", F.explode(_list_results()).alias("result"))
        .groupBy("serp_id", result["doc_id"].alias("doc_id"))
        .agg(
            *[F.min(result[name]).alias(name) for name in ("shown", "returned", "used")],
            *[F.max(result[name]).alias(name) for name in ("is_shown", "is_used")],
            F.max("user_agent").alias("user_agent"),
            F.min(search).alias("search"),
        )
        .withColumn("logged", F.max("is_shown").over(page))
        .withColumn("user_agent", F.max("user_agent").over(page))
        .where(F.col("is_shown") | F.col("is_used") | ~F.col("logged"))
    )
    columns = {name: search[name] for name in ("query_id", "user_id", "session_id", "query", "application")}
    rows = pages.select(
        "serp_id",
        "doc_id",
        "user_agent",
        *[value.alias(name) for name, value in columns.items()],
        F.coalesce("shown", "returned", "used").alias("position"),
        F.timestamp_micros(search["micros"]).alias("ts"),
        F.when(search["query_id"].isNull(), "result of a search without text").alias(IGNORED),
    )
    others = documents.where("type IN ('corrupt', 'other')").select(
        F.when(F.col("type") == "corrupt", F.col("value")).alias(CORRUPT),
        F.when(F.col("type") == "other", "document that is neither a search nor an event").alias(IGNORED),
    )
    return rows.unionByName(others, allowMissingColumns=True)


def read_interactions(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """One row per click, cart or purchase; other events, and those of searches that are not there, are ignored."""
    from pyspark.sql import functions as F

    from schemas.conform import IGNORED

    documents = read_documents(spark, paths, options)
    events = assign_searches(documents, find_rules(documents, options)).where("is_event")
    attributes = F.col("document")["event_attributes"]
    dwell = F.coalesce(
        attributes["dwell_seconds"].try_cast("double"),
        attributes["dwell_time"].try_cast("double"),
        attributes["dwell_ms"].try_cast("double") / 1000,
    )
    action = F.coalesce(keep_value(F.col("document")["action_name"]), F.lit("without a name"))
    has_page = F.col("page_id").isNotNull()
    ignored = F.coalesce(
        F.when(F.col("kind").isNull(), F.concat(F.lit("action "), action)),
        F.col("wrong_field"),
        F.when(has_page & F.col("search").isNull(), "event of a search that is not in the export"),
        F.when(has_page & F.col("search")["query_id"].isNull(), "event of a search without text"),
    )
    return events.where(~F.col("kind").eqNullSafe(SHOWN)).select(
        F.coalesce(F.col("document")["event_id"], "id", derive_id([F.col("value")])).alias("event_id"),
        "kind",
        "doc_id",
        "user_id",
        F.timestamp_micros("micros").alias("ts"),
        "serp_id",
        F.when(dwell >= 0, dwell).alias("dwell_seconds"),
        "application",
        ignored.alias(IGNORED),
    )


def _list_results() -> Column:
    """The results that a row tells of: all that a search returned, or the one that an event is about."""
    from pyspark.sql import functions as F

    def describe(doc_id: Column, **values: Column) -> Column:
        empty = {"shown": "int", "returned": "int", "used": "int", "is_shown": "boolean", "is_used": "boolean"}
        defaults = {n: F.lit(False) if kind == "boolean" else F.lit(None).cast(kind) for n, kind in empty.items()}
        return F.struct(doc_id.alias("doc_id"), *[v.alias(n) for n, v in (defaults | values).items()])

    is_shown = F.col("kind").eqNullSafe(SHOWN)
    event = describe(
        F.col("doc_id"),
        shown=F.when(is_shown, F.col("ordinal")),
        used=F.when(~is_shown, F.col("ordinal")),
        is_shown=is_shown,
        is_used=~is_shown,
    )
    returned = F.transform("response", lambda doc_id, index: describe(doc_id, returned=(index + 1).cast("int")))
    is_about = F.col("kind").isNotNull() & F.col("doc_id").isNotNull()
    return F.when(F.col("is_event"), F.when(is_about, F.array(event))).when(F.col("starts"), returned)


_KIND = r"\s*[^=,]+=\s*(click|cart|purchase|impression)\s*"
register_preset(
    "ubi",
    {"impressions": read_impressions, "interactions": read_interactions, "judgments": read_judgments},
    {
        "first_ordinal": r"auto|0|1",
        "object_id_field": r".+",
        "kinds": f"{_KIND}(,{_KIND})*",
        "files": r"json|csv",
        "sep": r".",
    },
)
