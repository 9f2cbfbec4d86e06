"""One row per page with arrays of results and clicks, or one row per result with a clicked flag.

Columns are found by their usual names; an option names one that is called otherwise. Clicks are flags beside the
results, the ids of the clicked results, or a field of each result.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.inputs.foreign import (
    counts_from_zero,
    derive_id,
    keep_value,
    normalise_query,
    parse_micros,
    parse_position,
    read_files,
)
from pipelines.inputs.format_registry import register_preset
from schemas.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import types as T

logger = logging.getLogger(__name__)

# By option: the names that a column, or a field of a result, usually has.
NAMES = {
    "page": ("serp_id", "page_id", "search_id", "request_id", "impression_id", "srch_id"),
    "query": ("query_id", "query", "user_query", "search_term", "keyword", "q"),
    "documents": (
        "doc_ids",
        "documents",
        "results",
        "hits",
        "items",
        "object_ids",
        "ranked_items",
        "doc_id",
        "item_id",
        "product_id",
        "prop_id",
    ),
    "clicked": (
        "clicks",
        "clicked",
        "is_clicked",
        "was_clicked",
        "click",
        "click_bool",
        "clicked_ids",
        "clicked_doc_ids",
    ),
    "time": ("ts", "timestamp", "time", "event_time", "datetime", "date_time"),
    "user": ("user_id", "client_id", "visitor_id", "user"),
    "position": ("position", "rank", "pos"),
    "system": ("system", "ranker", "variant", "random_bool"),
}
PAGE = ("serp_id", "query_id", "query", "user_id", "ts", "system")  # what is true of all results of a page
ID_FIELDS = ("doc_id", "id", "item_id", "product_id", "object_id", "docid", "key", "sku", "asin", "url")
MAX_MIXED = 0.01  # share of the pages that may have several queries: more are not pages
FLAGS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}


@dataclass(frozen=True)
class _Layout:
    """The rows as they are, and the name that each part of a page has there; None for what they lack."""

    rows: DataFrame
    names: Mapping[str, str | None]

    def column(self, part: str) -> Column:
        """A part of the page as text; null where the rows lack it."""
        from pyspark.sql import functions as F

        name = self.names[part]
        return F.lit(None).cast("string") if name is None else F.col(f"`{name}`").cast("string")


def read_impressions(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """One row per result of a page, with the other columns of the data."""
    layout = _find_layout(spark, paths, options)
    _require_own_pages(layout, options)
    return _read_results(layout, options).drop("is_clicked")


def read_interactions(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """One click per clicked result, at the time of its page."""
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    results = _read_results(_find_layout(spark, paths, options), options)
    event_id = derive_id([F.col("serp_id"), F.col("doc_id"), F.col("position")])
    return results.where(F.col("is_clicked") | F.col(CORRUPT).isNotNull()).select(
        event_id.alias("event_id"), F.lit("click").alias("kind"), "doc_id", "user_id", "ts", "serp_id", CORRUPT
    )


def _read_results(layout: _Layout, options: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    documents, clicked = layout.names["documents"], layout.names["clicked"]
    kind: Any = layout.rows.schema[str(documents)].dataType
    is_page = kind.typeName() == "array"
    rows = _add_page(layout, options, is_page=is_page)
    if is_page:
        clicks = F.lit(None) if clicked is None else F.col(f"`{clicked}`")
        results = rows.select("*", F.posexplode_outer(F.col(f"`{documents}`")).alias("_index", "_result"))
        results = results.where(F.col("_index").isNotNull() | F.col(CORRUPT).isNotNull())
        described = _describe_element(kind.elementType, clicks, documents=F.col(f"`{documents}`"))
    else:
        results = rows.withColumn("_index", F.lit(None).cast("int"))
        described = {
            "doc_id": layout.column("documents"),
            "position": parse_position(layout.column("position")),
            "is_clicked": _parse_flag(layout.column("clicked")),
        }
    taken = {str(name).lower() for name in (*PAGE, *described, *layout.names.values(), "_file", "_modified")}
    others = [name for name in layout.rows.columns if name.lower() not in taken]
    return _count_from_one(
        results.select(
            *PAGE, "_index", *[f"`{name}`" for name in others], *[v.alias(name) for name, v in described.items()]
        )
    )


def _find_layout(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> _Layout:
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    rows = read_files(spark, paths, options)
    if CORRUPT not in rows.columns:
        rows = rows.withColumn(CORRUPT, F.lit(None).cast("string"))
    rows = rows.withColumn("_file", F.col("_metadata.file_path")).withColumn(
        "_modified", F.col("_metadata.file_modification_time")
    )
    names: dict[str, str | None] = {}
    for part, usual in NAMES.items():
        wanted = (options[part],) if part in options else usual
        names[part] = next((name for name in wanted if name in rows.columns), None)
        if names[part] is None and (part in options or part in ("query", "documents")):
            raise InputError(
                f"there is no column {' or '.join(wanted)} for {part}",
                where=f"options.{part}",
                hint=_list_columns(rows, options),
            )
    if names["position"] is None and rows.schema[str(names["documents"])].dataType.typeName() != "array":
        raise InputError(
            f"there is no column {' or '.join(NAMES['position'])}, and {names['documents']} is not an array",
            where="options.position",
            hint=_list_columns(rows, options),
        )
    for part, instead in (("time", "the time at which the file was written"), ("user", "none")):
        if names[part] is None:
            logger.warning("pages have no %s; %s is used: set options.%s if a column has it", part, instead, part)
    return _Layout(rows, names)


def _require_own_pages(layout: _Layout, options: Mapping[str, str]) -> None:
    """Refuse page ids that start again in every file, unless the configuration says what they are."""
    from pyspark.sql import functions as F

    if "pages" in options or layout.names["page"] is None or len(layout.rows.inputFiles()) < 2:
        return
    query = normalise_query(layout.column("query"))
    counts = (
        layout.rows.select(keep_value(layout.column("page")).alias("page"), query.alias("query"), "_file")
        .where("page IS NOT NULL")
        .groupBy("page")
        .agg(
            (F.min("_file") != F.max("_file")).alias("is_spread"), (F.min("query") != F.max("query")).alias("is_mixed")
        )
        .agg(F.count("*").alias("pages"), F.count_if(F.col("is_spread") & F.col("is_mixed")).alias("mixed"))
        .first()
    )
    if counts is not None and counts["mixed"] > MAX_MIXED * counts["pages"]:
        raise InputError(
            f"{counts['mixed']:,} of {counts['pages']:,} ids of {layout.names['page']} are in several files with "
            "different queries: their pages would be mixed",
            where="options.pages",
            hint="set options: {pages: file}, also for interactions, if ids start again in every file; {pages: id} if "
            "such rows are one page",
        )


def _list_columns(rows: DataFrame, options: Mapping[str, str]) -> str:
    from schemas.conform import explain_odd_columns

    columns = [name for name in rows.columns if not name.startswith("_")]
    usual = {name for names in NAMES.values() for name in names}
    return explain_odd_columns(columns, usual | {*options.values()}) or f"set it to one of {', '.join(columns)}"


def _add_page(layout: _Layout, options: Mapping[str, str], *, is_page: bool) -> DataFrame:
    """The rows with what is true of the whole page."""
    from pyspark.sql import functions as F

    parts = [layout.column(part) for part in ("query", "user", "time", *(["documents"] if is_page else []))]
    own = keep_value(layout.column("page"))
    if options.get("pages") == "file":  # ids that start again in every file
        own = F.concat(own, F.lit("@"), F.sha2("_file", 256))
    has_time = layout.names["time"] is not None
    micros = parse_micros(layout.column("time")) if has_time else F.unix_micros("_modified")
    return layout.rows.withColumns(
        {
            "serp_id": F.coalesce(own, derive_id([F.col("_file"), *parts])),
            "query_id": normalise_query(layout.column("query")),
            "query": layout.column("query"),
            "user_id": keep_value(layout.column("user")),
            "ts": F.timestamp_micros(micros),
            "system": keep_value(layout.column("system")),
        }
    )


def _describe_element(kind: T.DataType, clicks: Column, documents: Column) -> dict[str, Column]:
    """The parts of one result of an array: of an id, or of the fields of a struct."""
    from pyspark.sql import functions as F

    fields = getattr(kind, "names", [])  # of a struct

    def find(names: Sequence[str]) -> Column:
        name = next((name for name in names if name in fields), None)
        return F.lit(None).cast("string") if name is None else F.col("_result")[name].cast("string")

    doc_id = find(ID_FIELDS) if fields else F.col("_result").cast("string")
    flags = [name for name in NAMES["clicked"] if name in fields]
    is_clicked = _parse_flag(find(flags)) if flags else _find_click(clicks, documents, doc_id)
    return {"doc_id": doc_id, "position": parse_position(find(NAMES["position"])), "is_clicked": is_clicked}


def _find_click(clicks: Column, documents: Column, doc_id: Column) -> Column:
    """Whether a result was clicked: by the flag at its index, or by its id among the clicked ones."""
    from pyspark.sql import functions as F

    texts = F.transform(clicks.cast("array<string>"), lambda value: F.lower(value))
    are_flags = (F.size(texts) == F.size(documents)) & F.forall(texts, lambda value: value.isin(*FLAGS))
    flag = _parse_flag(F.get(texts, F.col("_index")))
    return F.coalesce(F.when(are_flags, flag).otherwise(F.array_contains(texts, F.lower(doc_id))), F.lit(False))


def _parse_flag(value: Column) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.lower(F.trim(value)).isin(*[text for text, is_set in FLAGS.items() if is_set]), F.lit(False))


def _count_from_one(results: DataFrame) -> DataFrame:
    """Positions that count from 1: those of the data, or the index in the array."""
    from pyspark.sql import functions as F

    counts = results.agg(F.count_if(F.col("position") == 0), F.count_if(F.col("position") == 1)).first()
    base = 1 if counts is not None and counts_from_zero(counts[0], counts[1]) else 0
    position = F.coalesce(F.col("position") + base, F.col("_index") + 1)
    return results.withColumn("position", position).drop("_index")


_COLUMNS = dict.fromkeys(NAMES, r".+")
register_preset(
    "serp_arrays",
    {"impressions": read_impressions, "interactions": read_interactions},
    {**_COLUMNS, "files": r"json|parquet|csv", "sep": r".", "pages": r"file|id"},
)
