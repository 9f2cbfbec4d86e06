"""What rows have to do with each other: keys that repeat, and references that lead nowhere.

Both need a shuffle, so of long tables only whole queries or pages are looked at, the same ones in every table: those
whose hash is small enough. Each look is one job whose answer is a few rows; a sample is the smallest and the largest
of what failed, which needs no memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from schemas.conform import Conformed
from schemas.table import Table

BY_QUERY = ("rankings", "judgments", "queries", "decisions")
BY_PAGE = ("impressions", "interactions")
ALONE = {"interactions": "event_id", "documents": "doc_id"}  # tables whose key is no query and no page
# Control characters, the replacement character, and UTF-8 that was read as Latin-1.
GARBLED = "[\\x00-\\x1f\\x7f\ufffd]|[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac"
_BUCKETS = 1 << 20

Rows = Mapping[str, DataFrame]
Figures = dict[str, dict[str, Any]]


def relations(inputs: Mapping[str, Conformed], counts: Mapping[str, int], *, most: int) -> Figures:
    """Keys and references of all inputs; `most` rows of the longest table of each look are looked at."""
    tables = {name: given.table for name, given in inputs.items()}
    by_query = {name: inputs[name] for name in BY_QUERY if name in inputs}
    by_page = {name: inputs[name] for name in BY_PAGE if name in inputs}
    found: Figures = {}
    if by_query:
        found |= _of_queries(tables, _drawn(by_query, "query_id", counts, most))
    if by_page:
        found |= _of_pages(tables, _drawn(by_page, "serp_id", counts, most))
    for name in ALONE.keys() & inputs.keys():
        drawn = _drawn({name: inputs[name]}, ALONE[name], counts, most)[name]
        found.setdefault(name, {}).update(_of_keys(tables[name], drawn))
    return found


def _drawn(inputs: Mapping[str, Conformed], unit: str, counts: Mapping[str, int], most: int) -> Rows:
    """The rows of as many units as make up `most` rows of the longest table; all where there are fewer."""
    part = most / max(1, *[counts[name] for name in inputs])
    if part >= 1:
        return {name: given.rows for name, given in inputs.items()}
    small = F.pmod(F.xxhash64(unit), F.lit(_BUCKETS)) < round(part * _BUCKETS)
    return {name: given.rows_where(small) for name, given in inputs.items()}


def _shaped(rows: Rows, tables: Mapping[str, Table], columns: Mapping[str, str]) -> DataFrame:
    """The tables as one: the columns of a look, null where a table has none, and the names in a row as one text."""
    parts = []
    for name, table in rows.items():
        has = tables[name].names
        chosen = [F.col(c) if c in has else F.lit(None).cast(kind).alias(c) for c, kind in columns.items()]
        parts.append(table.select(F.lit(name).alias("table"), *chosen, _named(tables[name]).alias("named")))
    return reduce(DataFrame.unionByName, parts)


def _named(table: Table) -> Column:
    names = [c.name for c in table.columns if c.type == "string" and (c.name.endswith("_id") or c.name == "system")]
    return F.concat_ws(" ", *names)


def _failures(**conditions: tuple[Column, Column]) -> tuple[list[Column], list[Column]]:
    """Per condition how many rows meet it and, as a sample, the ends of what they are called."""
    counts = [F.count_if(condition).alias(name) for name, (condition, _) in conditions.items()]
    return counts, [
        _ends(F.when(condition, called)).alias(f"{name}_sample") for name, (condition, called) in conditions.items()
    ]


def _ends(value: Column) -> Column:
    return F.array_distinct(F.array_compact(F.array(F.min(value), F.max(value))))


def _garbled() -> tuple[Column, Column]:
    return F.col("named").rlike(GARBLED), F.col("named")


def _of_keys(table: Table, rows: DataFrame) -> dict[str, Any]:
    """The key of a table that has no part in the other looks."""
    nth = F.row_number().over(Window.partitionBy(*table.key).orderBy(*table.key))
    looked = rows.select(F.concat_ws(" / ", *table.key).alias("key"), _named(table).alias("named"), nth.alias("nth"))
    counts, samples = _failures(repeated=(F.col("nth") > 1, F.col("key")), garbled=_garbled())
    found = looked.agg(F.count("*").alias("keyed"), *counts, *samples).first()
    return {} if found is None else found.asDict()


def _of_pages(tables: Mapping[str, Table], rows: Rows) -> Figures:
    """Slots that are filled twice, and events on what their page did not show."""
    event = F.col("table") == "interactions"
    counts, samples = _failures(
        repeated=(~event & (F.col("nth") > 1), F.concat_ws(" / ", "serp_id", "position")),
        garbled=_garbled(),
        unshown=(event & ~F.col("shown"), F.concat_ws(" / ", "serp_id", "doc_id")),
    )
    looked = (
        _shaped(rows, tables, {"serp_id": "string", "doc_id": "string", "position": "int"})
        .where("serp_id IS NOT NULL")
        .repartition("serp_id")
        .withColumns(
            {
                "shown": F.max(~event).over(Window.partitionBy("serp_id", "doc_id")),
                "nth": F.row_number().over(Window.partitionBy("serp_id", "position", "table").orderBy("doc_id")),
            }
        )
        .groupBy("table")
        .agg(F.count("*").alias("keyed"), *counts, *samples)
    )
    found = {row["table"]: row.asDict() for row in looked.collect()}
    shown, done = found.get("impressions"), found.get("interactions")
    if shown is not None:
        del shown["unshown"], shown["unshown_sample"]
    if done is not None:
        done["placed"] = done["keyed"]
    return found


_COUNTS = ("keyed", "repeated", "garbled", "unlisted", "unlabelled")
_SAMPLES = ("repeated_sample", "garbled_sample", "unlisted_sample", "unlabelled_sample")


def _of_queries(tables: Mapping[str, Table], rows: Rows) -> Figures:
    """Keys of what belongs to a query, lists whose query is unknown or unjudged, and lists that are all the same."""
    nth = F.row_number().over(Window.partitionBy("query_id", "table", "system", "doc_id").orderBy("rank"))
    among = Window.partitionBy("query_id")
    named, garbled = F.col("named"), F.col("named").rlike(GARBLED)
    lists = (
        _shaped(rows, tables, {"system": "string", "query_id": "string", "doc_id": "string", "rank": "int"})
        .repartition("query_id")
        .withColumn("nth", nth)
        .withColumn("unlisted", ~F.max(F.col("table") == "queries").over(among))
        .withColumn("unlabelled", ~F.max(F.col("table") == "judgments").over(among))
        .groupBy("table", "system", "query_id", "unlisted", "unlabelled")
        .agg(
            F.count("*").alias("keyed"),
            F.count_if(F.col("nth") > 1).alias("repeated"),
            F.min(F.when(F.col("nth") > 1, F.concat_ws(" / ", "system", "query_id", "doc_id"))).alias(
                "repeated_sample"
            ),
            F.count_if(garbled).alias("garbled"),
            F.min(F.when(garbled, named)).alias("garbled_sample"),
            F.bit_xor(F.when(F.col("nth") == 1, F.xxhash64("doc_id"))).alias("documents"),
            (F.max("rank") - F.count("*")).alias("hole"),
        )
        .withColumn("unlisted_sample", F.when(F.col("unlisted"), F.col("query_id")))
        .withColumn("unlabelled_sample", F.when(F.col("unlabelled"), F.col("query_id")))
    )
    added = [F.sum(F.col(name).cast("bigint")).alias(name) for name in _COUNTS]
    alike = lists.groupBy("table", "system", "documents").agg(
        *added, *[F.min(name).alias(name) for name in _SAMPLES], F.max("hole").alias("hole"), F.count("*").alias("same")
    )
    systems = alike.groupBy("table", "system").agg(
        *added,
        *[_ends(F.col(name)).alias(name) for name in _SAMPLES],
        F.max("hole").alias("hole"),
        F.max("same").alias("same"),
        F.sum("same").alias("lists"),
    )
    return _by_table(systems.collect(), referred=rows.keys())


def _by_table(systems: list[Row], *, referred: Any) -> Figures:
    """The figures of each table, added up over its systems; of rankings also those of their lists."""
    known: Figures = {}
    for table in dict.fromkeys(row["table"] for row in systems):
        of = [row for row in systems if row["table"] == table]
        known[table] = _added(of, "keyed", "repeated", "garbled")
    lists = [row for row in systems if row["table"] == "rankings"]
    if lists:
        holes = [row["hole"] for row in lists if row["hole"] is not None]
        known["rankings"] |= {
            "lists": sum(row["lists"] for row in lists),
            "same_lists": {row["system"]: [row["same"], row["lists"]] for row in lists},
            **({"deepest": max(holes)} if holes else {}),
            **(_added(lists, "unlisted") if "queries" in referred else {}),
            **(_added(lists, "unlabelled") if "judgments" in referred else {}),
        }
    return known


def _added(rows: list[Row], *names: str) -> dict[str, Any]:
    counts = {name: sum(row[name] for row in rows) for name in names}
    samples = {f"{n}_sample": [s for row in rows for s in row[f"{n}_sample"]][:3] for n in names if n != "keyed"}
    return counts | samples
