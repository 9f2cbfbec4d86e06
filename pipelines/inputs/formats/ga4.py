"""The BigQuery export of Google Analytics 4: lists of items, and what was done with them.

`view_item_list` is a page, `select_item` a click, `add_to_cart` and `purchase` are carts and purchases; other events
are ignored and counted. A click belongs to the last list of its session that showed the item. The query is the event's
`search_term`, or that of its `page_location`, or else the list: category pages are queries too. The option `system`
names the parameter that has the variant of an experiment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inputs.foreign import (
    counts_from_zero,
    derive_id,
    keep_value,
    normalise_query,
    parse_micros,
    parse_position,
    read_files,
    require_preset_columns,
)
from pipelines.inputs.format_registry import register_preset

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

VIEW = "view_item_list"
KEPT = ("device", "geo", "platform", "stream_id")  # what an event says of its page besides, for segments
KINDS = {"select_item": "click", "add_to_cart": "cart", "purchase": "purchase"}
# What GA4 itself takes as search terms of an address.
_SEARCH = r"[?&](?:q|s|search|query|keyword)=([^&#]*)"


def read_impressions(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """One row per item of a list, at its index, or at its place in the event where it has none; with `KEPT` columns."""
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    items = _read_items(spark, paths, options)
    counts = items.agg(F.count_if(F.col("index") == 0), F.count_if(F.col("index") == 1)).first()
    base = 1 if counts is not None and counts_from_zero(counts[0], counts[1]) else 0
    return items.select(
        "serp_id",
        "query_id",
        "query",
        "user_id",
        "session_id",
        "doc_id",
        F.coalesce(F.col("index") + base, F.col("place") + 1).alias("position"),
        F.timestamp_micros("micros").alias("ts"),
        *[name for name in items.columns if name in (*KEPT, "system")],
        CORRUPT,
    )


def read_interactions(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """One row per item that was selected, put into a cart or bought."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT, IGNORED

    in_session = Window.partitionBy("user_id", "session_id", "doc_id").orderBy("micros", "is_event")
    page = F.last(F.when(F.col("event_name") == VIEW, F.col("serp_id")), ignorenulls=True).over(in_session)
    items = (
        _read_items(spark, paths, options, every_event=True)
        .withColumn("is_event", F.col(CORRUPT).isNotNull() | (F.col("event_name") != VIEW))
        .withColumn("page", page)
        .where("is_event")
    )
    kind = F.coalesce(*[F.when(F.col("event_name") == name, F.lit(kind)) for name, kind in KINDS.items()])
    is_click = kind == "click"
    ignored = F.coalesce(
        F.when(kind.isNull(), F.concat(F.lit("event "), "event_name")),
        F.when(is_click & F.col("page").isNull(), f"select_item without a {VIEW} of the item in its session"),
    )
    parts = [F.col(name) for name in ("user_id", "micros", "event_name", "doc_id", "place")]
    return items.select(
        derive_id(parts).alias("event_id"),
        kind.alias("kind"),
        "doc_id",
        "user_id",
        F.timestamp_micros("micros").alias("ts"),
        F.when(is_click, F.col("page")).alias("serp_id"),
        F.when(kind == "purchase", F.col("value")).alias("value"),
        ignored.alias(IGNORED),
        CORRUPT,
    )


def _read_items(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], *, every_event: bool = False
) -> DataFrame:
    """One row per item of an event, with what the event says of the page; other events have one row each."""
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    raw = read_files(spark, paths, options)
    require_preset_columns(raw, "GA4", ("event_name", "event_timestamp", "user_pseudo_id", "event_params", "items"))
    if CORRUPT not in raw.columns:
        raw = raw.withColumn(CORRUPT, F.lit(None).cast("string"))
    system = [_read_parameter(options["system"]).alias("system")] if "system" in options and not every_event else []
    kept = [name for name in KEPT if name in raw.columns and not every_event]
    is_used = F.col("event_name").isin(VIEW, *KINDS)
    texts = F.transform("items", _describe_item)
    nothing = F.array(F.lit(None).cast("struct<id:string,list:string,index:string,price:string,quantity:string>"))
    events = raw.select(
        "event_name",
        parse_micros(F.col("event_timestamp").cast("string")).alias("micros"),
        keep_value(F.col("user_pseudo_id").cast("string")).alias("user_id"),
        _read_parameter("ga_session_id").alias("session_id"),
        F.coalesce(_read_parameter("search_term"), _read_address()).alias("query"),
        F.posexplode(F.when(is_used, texts).otherwise(nothing)).alias("place", "item"),
        *kept,
        *system,
        CORRUPT,
    )
    if not every_event:
        events = events.where((F.col("event_name") == VIEW) | F.col(CORRUPT).isNotNull())
    item = F.col("item")
    listed = F.concat(F.lit("list: "), keep_value(item["list"]))
    page = [F.col(name) for name in ("user_id", "session_id", "micros", "query")]
    return events.select(
        "event_name",
        "micros",
        "user_id",
        "session_id",
        "place",
        "query",
        F.coalesce(normalise_query(F.col("query")), F.lower(listed)).alias("query_id"),
        derive_id([*page, item["list"]]).alias("serp_id"),
        keep_value(item["id"]).alias("doc_id"),
        parse_position(item["index"]).alias("index"),
        (item["price"].try_cast("double") * F.coalesce(item["quantity"].try_cast("double"), F.lit(1.0))).alias("value"),
        *kept,
        *(["system"] if system else []),
        CORRUPT,
    )


def _describe_item(item: Column) -> Column:
    """The fields of an item that are read, as text: integers come as text in JSON and as numbers in Parquet."""
    from pyspark.sql import functions as F

    def read(name: str) -> Column:
        return keep_value(F.get_json_object(F.to_json(item), f"$.{name}"))

    return F.struct(
        read("item_id").alias("id"),
        F.coalesce(read("item_list_id"), read("item_list_name")).alias("list"),
        read("item_list_index").alias("index"),
        read("price").alias("price"),
        read("quantity").alias("quantity"),
    )


def _read_parameter(name: str) -> Column:
    """The value of an event parameter, whichever of its types it has."""
    from pyspark.sql import functions as F

    value = F.to_json(F.get(F.filter("event_params", lambda entry: entry["key"] == name), 0)["value"])
    types = ("string_value", "int_value", "double_value", "float_value")
    return F.coalesce(*[keep_value(F.get_json_object(value, f"$.{kind}")) for kind in types])


def _read_address() -> Column:
    """The search term in the address of the page."""
    from pyspark.sql import functions as F

    term = F.regexp_extract(_read_parameter("page_location"), _SEARCH, 1)
    return keep_value(F.try_url_decode(term))


register_preset(
    "ga4",
    {"impressions": read_impressions, "interactions": read_interactions},
    {"files": r"json|parquet", "system": r".+"},
)
