"""The documents of a UBI export: searches and events, the rules to read them by, and the page of each event."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pipelines.inputs.foreign import (
    counts_from_zero,
    find_files,
    keep_value,
    normalise_query,
    parse_micros,
    parse_position,
)
from pipelines.inputs.formats.ubi_csv import read_csv_documents
from schemas.errors import InputError
from schemas.redact import cut_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

logger = logging.getLogger(__name__)

SHOWN = "impression"
KINDS = {"click": "click", "item_click": "click", "add_to_cart": "cart", "purchase": "purchase", SHOWN: SHOWN}
EVERY = "any"  # value of the option `object_id_field`: all of them
MAX_PROFILES = 1000  # applications × fields of object ids
MAX_LINE = 80  # characters of a line in a message
_ACTION_LINE = r'^\s*\{\s*"(index|create|update|delete)"\s*:\s*\{[^{}]*\}\s*\}\s*$'
_LINE = r"(?s)^([^\t{]*)\t?(.*)$"  # the index, where the line names it, and the document
RESPONSES = ("query_response_object_ids", "query_response_objects_ids", "query_response_hit_ids")
_DOCUMENT = f"""
    event_id STRING, application STRING, action_name STRING, query_id STRING, client_id STRING, user_id STRING,
    session_id STRING, timestamp STRING, user_query STRING, {", ".join(f"{name} ARRAY<STRING>" for name in RESPONSES)},
    event_attributes STRUCT<
        session_id: STRING, browser: STRING, user_agent: STRING,
        dwell_seconds: STRING, dwell_time: STRING, dwell_ms: STRING,
        object: STRUCT<object_id: STRING, object_id_field: STRING>, position: STRUCT<ordinal: STRING>>
"""


@dataclass(frozen=True)
class UbiRules:
    """What an export needs to be read: its kinds of events, and by application where positions start and which ids."""

    kinds: Mapping[str, str]
    from_zero: Sequence[str]  # applications
    fields: Mapping[str, str]  # application -> the field whose ids are read; empty where all are


def read_documents(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """One row per document, with its type (query, event, other or corrupt) and the line it came from."""
    documents = _parse_lines(_read_lines(spark, paths, options))
    _require_documents(documents)
    return documents


def _read_lines(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import types as T

    kind, settings = find_files(spark, paths, options)
    if kind == "csv" and ("files" in options or not _hold_documents(spark, paths)):
        return read_csv_documents(spark, paths, settings, cast(T.StructType, T.StructType.fromDDL(_DOCUMENT)))
    return spark.read.text(list(paths))


def _hold_documents(spark: SparkSession, paths: Sequence[str]) -> bool:
    """Whether files that are named as CSV hold a dump, `index<TAB>document`: no header of CSV has a brace."""
    first = spark.read.text(list(paths)).where("trim(value) != ''").first()
    return first is not None and re.match(_LINE, first["value"])[2].startswith("{")  # type: ignore[index]


def _require_documents(documents: DataFrame) -> None:
    """Refuse files without a search or an event before anything else is computed: nothing can be made of them."""
    if not documents.where("type = 'query'").isEmpty():
        return
    if not documents.where("type = 'event'").isEmpty():  # perhaps of one day among others
        logger.warning(
            "the files have events but no search, and an event belongs to a search: read both, as in "
            "path: [ubi_queries.ndjson, ubi_events.ndjson]"
        )
        return
    first = documents.first()
    if first is not None:  # an empty file is reported as one
        raise InputError(
            f"no line is a search or an event of UBI; the first is {cut_text(first['value'], MAX_LINE)!r}",
            where="format",
            hint="UBI is read from JSON lines, or from CSV where the name of the file ends with .csv or options: "
            "{files: csv} says so; `assay inspect` drafts how to read other files",
        )


def _parse_lines(lines: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    lines = lines.where((F.trim("value") != "") & ~F.col("value").rlike(_ACTION_LINE))
    body, hit, document = F.col("body"), F.col("hit"), F.col("document")
    index = F.lower(F.coalesce(keep_value(F.regexp_extract("value", _LINE, 1)), hit["_index"]))
    is_search = F.coalesce(document["user_query"], *[document[name].cast("string") for name in RESPONSES]).isNotNull()
    kind = (
        F.when(F.get_json_object(body, "$").isNull(), "corrupt")
        .when(index.contains("event"), "event")
        .when(index.contains("quer"), "query")
        .when(index.isNotNull(), "other")
        .when(document["action_name"].isNotNull(), "event")
        .when(is_search, "query")
        .otherwise("other")
    )
    wrapper = F.from_json(body, "_index STRING, _id STRING, _source STRING")
    return (
        lines.withColumn("body", F.regexp_extract("value", _LINE, 2))
        .withColumn("hit", F.when(body.contains('"_source"'), wrapper))
        .withColumn("document", F.from_json(F.coalesce(hit["_source"], body), _DOCUMENT))
        .select("value", "document", hit["_id"].alias("id"), kind.alias("type"))
    )


def find_rules(documents: DataFrame, options: Mapping[str, str]) -> UbiRules:
    """Decide by application where positions start and which field of ids is read, from the export and the options."""
    from pyspark.sql import functions as F

    kinds = KINDS | _parse_kinds(options.get("kinds", ""))
    document = F.col("document")
    ordinal = parse_position(document["event_attributes"]["position"]["ordinal"])
    rows = (
        documents.where((F.col("type") == "event") & document["action_name"].isin(*kinds))
        .groupBy(_application().alias("application"), _id_field().alias("field"))
        .agg(
            F.count("*").alias("rows"), F.count_if(ordinal == 0).alias("zeros"), F.count_if(ordinal == 1).alias("ones")
        )
        .limit(MAX_PROFILES + 1)
        .collect()
    )
    if len(rows) > MAX_PROFILES:
        raise InputError(f"the export has over {MAX_PROFILES} applications", hint="check the field application")
    profiles = {name: [row for row in rows if row["application"] == name] for name in {r["application"] for r in rows}}
    first = options.get("first_ordinal", "auto")
    from_zero = [
        name
        for name, own in profiles.items()
        if first == "0" or (first == "auto" and counts_from_zero(*[sum(r[n] for r in own) for n in ("zeros", "ones")]))
    ]
    fields = {name: _choose_field(name, own, options.get("object_id_field")) for name, own in profiles.items()}
    return UbiRules(kinds, sorted(from_zero), {name: field for name, field in fields.items() if field is not None})


def _parse_kinds(text: str) -> dict[str, str]:
    """Read `product_click=click, basket=cart`."""
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    return {name.strip(): kind.strip() for name, _, kind in pairs}


def _choose_field(application: str, profile: Sequence[Row], option: str | None) -> str | None:
    """The field whose ids are read: that of the option, or the most frequent one; None where all are."""
    counts = {row["field"]: row["rows"] for row in profile if row["field"] is not None}
    if option is not None or not counts:
        return None if option == EVERY else option
    chosen: str = max(sorted(counts), key=lambda name: counts[name])
    if len(counts) > 1:
        logger.warning(
            "the events of application %r have ids of several fields (%s); only those of %s are read: set "
            "options.object_id_field to one of them, or to %s",
            application,
            ", ".join(f"{name} {counts[name]:,}" for name in sorted(counts)),
            chosen,
            EVERY,
        )
    return chosen


def _application() -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.col("document")["application"], F.lit(""))


def _id_field() -> Column:
    from pyspark.sql import functions as F

    return keep_value(F.col("document")["event_attributes"]["object"]["object_id_field"])


def assign_searches(documents: DataFrame, rules: UbiRules) -> DataFrame:
    """Searches and events, each with its page: the last search of its `query_id` before it, or else the first.

    One `query_id` is often used for several searches, of retyped text or with another filter. Each that differs from
    the one before it in text or results is a page of its own; the second page of `q` is `q/2`.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    nowhere = F.concat(F.lit("\0"), F.xxhash64("value").cast("string"))  # spreads events without a query_id
    in_time = Window.partitionBy(F.coalesce("page_id", nowhere)).orderBy("micros", "is_event", "value")
    before = in_time.rowsBetween(Window.unboundedPreceding, -1)
    whole = in_time.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    signature = F.when(~F.col("is_event"), F.xxhash64("query_id", "response"))
    starts = ~F.col("is_event") & ~F.col("signature").eqNullSafe(F.last("signature", ignorenulls=True).over(before))
    search = F.struct("micros", "query_id", "query", "user_id", "session_id", "application")
    number = F.greatest(F.sum(F.col("starts").cast("int")).over(in_time), F.lit(1)).cast("string")
    suffix = F.when(F.col("number") != "1", F.concat(F.lit("/"), "number")).otherwise("")
    return (
        _list_rows(documents, rules)
        .withColumn("signature", signature)
        .withColumn("starts", starts)
        .withColumn("search", F.when(F.col("starts") & F.col("page_id").isNotNull(), search))
        .withColumn("number", number)
        .withColumn(
            "search",
            F.coalesce(
                F.last("search", ignorenulls=True).over(in_time), F.first("search", ignorenulls=True).over(whole)
            ),
        )
        .withColumn("serp_id", F.when(F.col("search").isNotNull(), F.concat("page_id", suffix)))
    )


def _list_rows(documents: DataFrame, rules: UbiRules) -> DataFrame:
    """The searches and events with the fields that are read of them."""
    from pyspark.sql import functions as F

    document = F.col("document")
    attributes = document["event_attributes"]
    base = F.when(_application().isin(*rules.from_zero), 1).otherwise(0) if rules.from_zero else F.lit(0)
    field, wanted = _id_field(), _look_up(rules.fields, _application())
    response = F.coalesce(*[F.when(F.size(document[name]) > 0, document[name]) for name in RESPONSES])
    return documents.where("type IN ('query', 'event')").select(
        "value",
        "id",
        "document",
        response.alias("response"),
        (F.col("type") == "event").alias("is_event"),
        keep_value(document["query_id"]).alias("page_id"),
        parse_micros(document["timestamp"]).alias("micros"),
        normalise_query(document["user_query"]).alias("query_id"),
        document["user_query"].alias("query"),
        F.coalesce(keep_value(document["client_id"]), keep_value(document["user_id"])).alias("user_id"),
        F.coalesce(keep_value(document["session_id"]), keep_value(attributes["session_id"])).alias("session_id"),
        _application().alias("application"),
        F.coalesce(attributes["user_agent"], attributes["browser"]).alias("user_agent"),
        _look_up(rules.kinds, document["action_name"]).alias("kind"),
        keep_value(attributes["object"]["object_id"]).alias("doc_id"),
        (parse_position(attributes["position"]["ordinal"]) + base).alias("ordinal"),
        F.when(field != wanted, F.concat(F.lit("object_id_field "), field)).alias("wrong_field"),
    )


def _look_up(values: Mapping[str, str], key: Column) -> Column:
    """The value of a key; null where there is none."""
    from pyspark.sql import functions as F

    if not values:
        return F.lit(None).cast("string")
    return F.try_element_at(F.create_map(*[F.lit(text) for pair in values.items() for text in pair]), key)
