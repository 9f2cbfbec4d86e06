"""What rows have to do with each other: keys that repeat, and references that lead nowhere.

Of long tables only whole queries or pages are looked at, the same ones in every table: those whose hash is small
enough. So few rows, whose number has a bound, are put together faster as Arrow tables than in a shuffle. Rows of
queries are drawn in the pass that counts all rows, those of pages and events in one pass more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.conform import Conformed
from schemas.table import Table

BY_QUERY = ("rankings", "judgments", "queries", "decisions")
BY_PAGE = ("impressions", "interactions")
ALONE = {"interactions": "event_id", "documents": "doc_id"}  # tables whose key is no query and no page
# Control characters, the replacement character, and UTF-8 that was read as Latin-1.
GARBLED = "[\\x00-\\x1f\\x7f\ufffd]|[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac"
_ONE_PER_PAGE = ("query_id", "user_id", "system")
_OF_QUERIES = ("query_id", "doc_id", "rank")  # and the system, by which rows are counted anyway
_OF_PAGES = ("serp_id", "doc_id", "position", *_ONE_PER_PAGE)
_BUCKETS = 1 << 20
LOOKED_AT = "looked_at"  # the part of the rows, where it is not the whole
SLACK = 2  # times the rows that a look should draw: a page or query may be far longer than the others

Tables = Mapping[str, Table]
Rows = Mapping[str, DataFrame]
Figures = dict[str, dict[str, Any]]


def drawn_by_query(inputs: Mapping[str, Conformed], *, most: int) -> dict[str, dict[str, Column]]:
    """What identifies the rows of some whole queries, of each table that belongs to queries; null in other rows."""
    mine = {name: given for name, given in inputs.items() if name in BY_QUERY}
    if not mine:
        return {}
    small = _small("query_id", _part(_counts(mine), most))
    wanted: dict[str, dict[str, Column]] = {}
    for name, given in mine.items():
        has = given.table.names
        columns = {c: F.col(c) for c in _OF_QUERIES if c in has} | {"garbled": _garbled(given.table)}
        columns |= {"document": F.xxhash64("doc_id")} if "doc_id" in has else {}
        wanted[name] = {c: F.when(small & given.reason.isNull(), value) for c, value in columns.items()}
    return wanted


def _counts(inputs: Mapping[str, Conformed]) -> dict[str, int]:
    """The rows of each input; files that say how many they have are not read for it."""
    counted = [
        of.marked.agg(F.count("*").alias("rows")).select(F.lit(n).alias("table"), "rows") for n, of in inputs.items()
    ]
    return {row["table"]: row["rows"] for row in reduce(DataFrame.unionByName, counted).collect()}


def relations(
    inputs: Mapping[str, Conformed], counts: Mapping[str, int], drawn: Mapping[str, pa.Table], *, most: int
) -> Figures:
    """Keys and references of all inputs; `most` rows of the longest table of each look are looked at."""
    tables = {name: given.table for name, given in inputs.items()}
    by_page = {name: inputs[name] for name in BY_PAGE if name in inputs}
    by_query = {name: rows for name, rows in drawn.items() if "query_id" in rows.column_names}
    found = _of_queries(tables, {name: rows.filter(pc.field("query_id").is_valid()) for name, rows in by_query.items()})
    if by_page:
        placed = {
            name: rows.where("serp_id IS NOT NULL") for name, rows in _drawn(by_page, "serp_id", counts, most).items()
        }
        rows = _looked(tables, placed, _OF_PAGES, most)
        found |= _of_pages(tables, rows, referred=by_page if _whole(rows, by_page, most) else ())
    for name in ALONE.keys() & inputs.keys():
        alone = _looked(tables, _drawn({name: inputs[name]}, ALONE[name], counts, most), tables[name].key, most)
        found.setdefault(name, {}).update(_keys(alone, tables[name]))
    for group in (BY_QUERY, BY_PAGE, *((name,) for name in ALONE)):
        part = _part({name: counts[name] for name in group if name in found}, most)
        for name in group:
            if name in found and part < found[name].get(LOOKED_AT, 1):
                found[name][LOOKED_AT] = part
    return found


def _part(counts: Mapping[str, int], most: int) -> float:
    return most / max((1, *counts.values()))


def _small(unit: str, part: float) -> Column:
    """Whether a unit belongs to this part of all, by its hash."""
    return F.lit(True) if part >= 1 else F.xxhash64(unit).bitwiseAND(F.lit(_BUCKETS - 1)) < round(part * _BUCKETS)


def _drawn(inputs: Mapping[str, Conformed], unit: str, counts: Mapping[str, int], most: int) -> Rows:
    """The rows of as many units as make up `most` rows of the longest table; all where there are fewer."""
    small = _small(unit, _part({name: counts[name] for name in inputs}, most))
    return {name: given.rows_where(small) for name, given in inputs.items()}


def _looked(tables: Tables, rows: Rows, columns: Sequence[str], most: int) -> pa.Table:
    """These columns of all tables, null where one has none, and a row's name where it is garbled."""
    kinds = {c.name: c.type for name in rows for c in tables[name].columns}
    parts = []
    for name, table in rows.items():
        has = tables[name].names
        chosen = [F.col(c) if c in has else F.lit(None).cast(kinds[c]).alias(c) for c in columns if c in kinds]
        added = [F.lit(name).alias("table"), _garbled(tables[name]).alias("garbled"), F.lit(1).alias("rows")]
        parts.append(table.select(*chosen, *added))
    return reduce(DataFrame.unionByName, parts).limit(_bound(rows, most)).toArrow()


def _bound(rows: Collection[str], most: int) -> int:
    return SLACK * most * len(rows)


def _whole(looked: pa.Table, rows: Collection[str], most: int) -> bool:
    """Whether every drawn row is there; where not, what seems to lead nowhere may have been cut off."""
    return bool(looked.num_rows < _bound(rows, most))


def _garbled(table: Table) -> Column:
    names = [c.name for c in table.columns if c.type == "string" and (c.name.endswith("_id") or c.name == "system")]
    named = F.concat_ws(" ", *names)
    return F.when(named.rlike(GARBLED), named)


def _of(rows: pa.Table, name: str) -> pa.Table:
    return rows.filter(pc.field("table") == name)


def _keys(rows: pa.Table, table: Table) -> dict[str, Any]:
    """How many rows repeat the key of another one, and how many have a garbled name."""
    keys = rows.group_by(list(table.key)).aggregate([("rows", "sum")])
    garbled = rows.filter(pc.field("garbled").is_valid())
    keyed = _sum(rows["rows"])
    return {
        "keyed": keyed,
        "repeated": keyed - keys.num_rows,
        "repeated_sample": _ends(_called(keys.filter(pc.field("rows_sum") > 1), table.key)),
        "garbled": _sum(garbled["rows"]),
        "garbled_sample": _ends(garbled["garbled"]),
    }


def _sum(values: pa.ChunkedArray) -> int:
    return int(pc.sum(values).as_py() or 0)


def _called(rows: pa.Table, key: Sequence[str]) -> pa.ChunkedArray:
    parts = [rows[name].cast(pa.string()) for name in key]
    return pc.binary_join_element_wise(*parts, " / ", null_handling="skip")


def _ends(names: pa.ChunkedArray) -> list[str]:
    """The smallest and the largest, as a sample that is the same whatever the order of the rows."""
    ends = pc.min_max(names).as_py()
    return [] if ends["min"] is None else list(dict.fromkeys(ends.values()))


def _of_pages(tables: Tables, rows: pa.Table, *, referred: Collection[str]) -> Figures:
    """Slots that are filled twice, pages that are two, and events on what their page did not show or not to them."""
    shown, done = _of(rows, "impressions"), _of(rows, "interactions")
    found: Figures = {"impressions": _keys(shown, tables["impressions"]) | _mixed(shown)} if shown.num_rows else {}
    if "interactions" in referred and "impressions" in referred:
        lost, met = _missing(done, shown, "doc_id"), _of_known_pages(done, shown)
        others = _missing(met, shown, "user_id")
        found["interactions"] = {
            "placed": done.num_rows,
            "unshown": lost.num_rows,
            "unshown_sample": _ends(_called(lost, lost.column_names)),
            "met": met.num_rows,
            "strange": others.num_rows,
            "strange_sample": _ends(_called(others, others.column_names)),
        }
    return found


def _mixed(shown: pa.Table) -> dict[str, Any]:
    """Pages whose rows disagree about what a page has one of."""
    pages = shown.group_by("serp_id").aggregate([(name, "count_distinct") for name in _ONE_PER_PAGE])
    mixed = reduce(pc.or_, [pc.greater(pages[f"{name}_count_distinct"], 1) for name in _ONE_PER_PAGE])
    named = pages["serp_id"].filter(mixed)
    return {"whole_pages": pages.num_rows, "mixed": len(named), "mixed_sample": _ends(named)}


def _of_known_pages(done: pa.Table, shown: pa.Table) -> pa.Table:
    return done.filter(pc.is_in(done["serp_id"], shown["serp_id"]))


def _missing(done: pa.Table, shown: pa.Table, column: str) -> pa.Table:
    """The events whose page has no row with what they have in a column."""
    pair = ["serp_id", column]
    return done.select(pair).join(shown.select(pair), pair, join_type="left anti")


def _of_queries(tables: Tables, drawn: Mapping[str, pa.Table]) -> Figures:
    """Keys of what belongs to a query, lists whose query is unknown or unjudged, and lists that are all the same."""
    found = {name: _keys(rows, tables[name]) for name, rows in drawn.items()}
    if "rankings" in drawn:
        lists = _lists(drawn["rankings"])
        found["rankings"] |= _of_lists(lists)
        for name, figure in {"queries": "unlisted", "judgments": "unlabelled"}.items():
            if name in drawn:
                lost = lists["query_id"].filter(pc.invert(pc.is_in(lists["query_id"], drawn[name]["query_id"])))
                found["rankings"] |= {figure: len(lost), f"{figure}_sample": _ends(lost)}
        if "judgments" in drawn:
            judged = drawn["judgments"]
            unused = judged.filter(pc.invert(pc.is_in(judged["query_id"], lists["query_id"])))
            found["judgments"] |= {"unranked": _sum(unused["rows"]), "unranked_sample": _ends(unused["query_id"])}
    return found


def _lists(ranked: pa.Table) -> pa.Table:
    """One row per list: how far its ranks reach beyond its length, and its documents as one number."""
    once = ranked.group_by(["system", "query_id", "doc_id", "document"]).aggregate([("rank", "max"), ("rows", "sum")])
    # The sum of the hashes goes round where it is too large, which is all the same: equal sets have equal sums.
    lists = once.group_by(["system", "query_id"]).aggregate(
        [("document", "sum"), ("rank_max", "max"), ("rows_sum", "sum")]
    )
    return lists.append_column("hole", pc.subtract(lists["rank_max_max"].cast(pa.int64()), lists["rows_sum_sum"]))


def _of_lists(lists: pa.Table) -> dict[str, Any]:
    alike = lists.group_by(["system", "document_sum"]).aggregate([([], "count_all")])
    systems = alike.group_by(["system"]).aggregate([("count_all", "max"), ("count_all", "sum")]).sort_by("system")
    deepest = pc.max(lists["hole"]).as_py()
    return {
        "lists": lists.num_rows,
        "asked": pc.count_distinct(lists["query_id"]).as_py(),
        "same_lists": {of["system"]: [of["count_all_max"], of["count_all_sum"]] for of in systems.to_pylist()},
        **({} if deepest is None else {"deepest": deepest}),
    }
