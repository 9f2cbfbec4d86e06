"""Figures of keys and references: keys that repeat, and references to rows that do not exist.

Of long tables, a sample of whole queries or pages is checked, the same ones in every table: those whose hash is below
a limit. So few rows are joined faster as Arrow tables than in a shuffle. Rows of queries are sampled in the pass that
counts all rows, those of pages and events in one more pass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.inputs.count import RowSample
from schemas.conform import ConformedTable
from schemas.table import Table
from udfs.spark.file_counts import BUCKETS, DOCUMENT, QuerySample

BY_QUERY = ("rankings", "judgments", "opinions", "queries", "decisions")
BY_PAGE = ("impressions", "interactions")
BY_KEY = {"interactions": "event_id", "documents": "doc_id"}  # tables whose key is neither a query nor a page
# Control characters, the replacement character, and UTF-8 that was read as Latin-1.
GARBLED = "[\\x00-\\x1f\\x7f\ufffd]|[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac"
_ONE_PER_PAGE = ("query_id", "user_id", "system")
_QUERY_COLUMNS = ("query_id", "doc_id", "rank")  # the system is a key of the counts already
_PAGE_COLUMNS = ("serp_id", "doc_id", "position", *_ONE_PER_PAGE)
SAMPLED_SHARE = "looked_at"  # the figure with the share of the rows that was sampled; absent where all were
MAX_SAMPLED_TEXT = 400  # bytes of an id in a sample
SLACK = 2  # a sample may have this many times its target of rows: a page or query may be far longer than the others

Tables = Mapping[str, Table]
Rows = Mapping[str, DataFrame]
Figures = dict[str, dict[str, Any]]


def build_query_samples(inputs: Mapping[str, ConformedTable], *, target: int) -> dict[str, RowSample]:
    """Samples of whole queries, one of each table that belongs to queries, of about `target` rows."""
    by_query = {name: conformed for name, conformed in inputs.items() if name in BY_QUERY}
    if not by_query:
        return {}
    share = _compute_share(_count_rows(by_query), target)
    in_sample = _hash_below("query_id", share)
    samples = {}
    for name, conformed in by_query.items():
        names = conformed.table.names
        columns = {c: _shorten(conformed.table, c) for c in _QUERY_COLUMNS if c in names} | {
            "garbled": _select_garbled(conformed.table)
        }
        columns |= {DOCUMENT: F.xxhash64("doc_id")} if "doc_id" in names else {}
        samples[name] = RowSample(
            columns,
            where=in_sample & conformed.reason.isNull(),
            limit=SLACK * target,
            of_files=QuerySample(
                columns=tuple(columns),
                below=_find_limit(share),
                limit=SLACK * target,
                ids=tuple(_list_ids(conformed.table)),
                doubtful=GARBLED,
                longest=MAX_SAMPLED_TEXT,
            ),
        )
    return samples


def collect_reference_figures(
    inputs: Mapping[str, ConformedTable],
    counts: Mapping[str, int],
    samples: Mapping[str, pa.Table | None],
    *,
    target: int,
) -> Figures:
    """Figures of the keys and references of all inputs; a sample has about `target` rows of the longest table."""
    tables = {name: conformed.table for name, conformed in inputs.items()}
    figures = _collect_query_figures(tables, {name: rows for name, rows in samples.items() if rows is not None})
    by_page = {name: inputs[name] for name in BY_PAGE if name in inputs}
    if by_page:
        sampled = _sample_rows(by_page, "serp_id", counts, target)
        on_pages = {name: rows.where("serp_id IS NOT NULL") for name, rows in sampled.items()}
        collected = _collect_rows(tables, on_pages, _PAGE_COLUMNS, target)
        complete = collected.num_rows < _max_rows(by_page, target)  # otherwise a reference may have been cut off
        figures |= _collect_page_figures(tables, collected, references=complete and len(by_page) == len(BY_PAGE))
    for name in BY_KEY.keys() & inputs.keys():
        rows = _sample_rows({name: inputs[name]}, BY_KEY[name], counts, target)
        keys = _collect_key_figures(_collect_rows(tables, rows, tables[name].key, target), tables[name])
        figures.setdefault(name, {}).update(keys)
    for group in (BY_QUERY, BY_PAGE, *((name,) for name in BY_KEY)):
        share = _compute_share({name: counts[name] for name in group if name in figures}, target)
        for name in group:
            if name in figures and share < figures[name].get(SAMPLED_SHARE, 1):
                figures[name][SAMPLED_SHARE] = share
    return figures


def _count_rows(inputs: Mapping[str, ConformedTable]) -> dict[str, int]:
    """The rows of each input; formats that store their number of rows are not scanned."""
    from_footers = {
        name: conformed.known_rows for name, conformed in inputs.items() if conformed.known_rows is not None
    }
    counts = [
        conformed.marked_rows.agg(F.count("*").alias("rows")).select(F.lit(name).alias("table"), "rows")
        for name, conformed in inputs.items()
        if name not in from_footers
    ]
    counted = reduce(DataFrame.unionByName, counts).collect() if counts else []
    return from_footers | {row["table"]: row["rows"] for row in counted}


def _compute_share(counts: Mapping[str, int], target: int) -> float:
    return target / max((1, *counts.values()))


def _hash_below(unit: str, share: float) -> Column:
    """Whether the hash of a unit falls into this share of all hashes."""
    return F.lit(True) if share >= 1 else F.xxhash64(unit).bitwiseAND(F.lit(BUCKETS - 1)) < _find_limit(share)


def _find_limit(share: float) -> int:
    return BUCKETS if share >= 1 else round(share * BUCKETS)


def _sample_rows(inputs: Mapping[str, ConformedTable], unit: str, counts: Mapping[str, int], target: int) -> Rows:
    """The rows of whole units, about `target` rows of the longest table; all rows where it has fewer."""
    in_sample = _hash_below(unit, _compute_share({name: counts[name] for name in inputs}, target))
    return {name: conformed.rows_where(in_sample) for name, conformed in inputs.items()}


def _collect_rows(tables: Tables, rows: Rows, columns: Sequence[str], target: int) -> pa.Table:
    """These columns of all tables, null where a table has none, and the ids of a row where they are garbled."""
    types = {c.name: c.type for name in rows for c in tables[name].columns}
    parts = []
    for name, table in rows.items():
        names = tables[name].names
        selected = [
            _shorten(tables[name], c).alias(c) if c in names else F.lit(None).cast(types[c]).alias(c)
            for c in columns
            if c in types
        ]
        added = [F.lit(name).alias("table"), _select_garbled(tables[name]).alias("garbled"), F.lit(1).alias("rows")]
        parts.append(table.select(*selected, *added))
    return reduce(DataFrame.unionByName, parts).limit(_max_rows(rows, target)).toArrow()


def _max_rows(tables: Collection[str], target: int) -> int:
    return SLACK * target * len(tables)


def _select_garbled(table: Table) -> Column:
    """The ids of a row where one of them is garbled, else null."""
    ids = F.concat_ws(" ", *_list_ids(table))
    return F.when(ids.rlike(GARBLED), _abbreviate(ids))


def _list_ids(table: Table) -> list[str]:
    return [c.name for c in table.columns if c.type == "string" and (c.name.endswith("_id") or c.name == "system")]


def _shorten(table: Table, name: str) -> Column:
    """A column of the sample; a long text is replaced by its start and a hash, so that a sample is bounded in bytes."""
    return _abbreviate(F.col(name)) if table[name].type == "string" else F.col(name)


def _abbreviate(text: Column) -> Column:
    short = F.concat(F.substring(text, 1, MAX_SAMPLED_TEXT // 4), F.lit("…"), F.hex(F.xxhash64(text)))
    return F.when(F.octet_length(text) > MAX_SAMPLED_TEXT, short).otherwise(text)


def _collect_key_figures(rows: pa.Table, table: Table) -> dict[str, Any]:
    """The rows that repeat the key of another one, and those with a garbled id."""
    keys = rows.group_by(list(table.key)).aggregate([("rows", "sum")])
    garbled = rows.filter(pc.field("garbled").is_valid())
    total = _sum(rows["rows"])
    return {
        "keyed": total,
        "repeated": total - keys.num_rows,
        "repeated_sample": _select_ends(_join_columns(keys.filter(pc.field("rows_sum") > 1), table.key)),
        "garbled": _sum(garbled["rows"]),
        "garbled_sample": _select_ends(garbled["garbled"]),
    }


def _sum(values: pa.ChunkedArray) -> int:
    return int(pc.sum(values).as_py() or 0)


def _join_columns(rows: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    parts = [rows[name].cast(pa.string()) for name in columns]
    return pc.binary_join_element_wise(*parts, " / ", null_handling="skip")


def _select_ends(values: pa.ChunkedArray) -> list[str]:
    """The smallest and the largest value: a sample that does not depend on the order of the rows."""
    ends = pc.min_max(values).as_py()
    return [] if ends["min"] is None else list(dict.fromkeys(ends.values()))


def _collect_page_figures(tables: Tables, rows: pa.Table, *, references: bool) -> Figures:
    """Repeated slots, pages of two searches, and events on a page that did not show their document, or not to them."""
    impressions, events = (rows.filter(pc.field("table") == name) for name in BY_PAGE)
    figures: Figures = {}
    if impressions.num_rows:
        keys = _collect_key_figures(impressions, tables["impressions"])
        figures["impressions"] = keys | _collect_mixed_pages(impressions)
    if references:
        unshown = _select_unmatched(events, impressions, "doc_id")
        named = impressions.filter(pc.field("user_id").is_valid())  # pages and events need not name their user
        on_page = events.filter(pc.and_(pc.is_in(events["serp_id"], named["serp_id"]), pc.is_valid(events["user_id"])))
        strange = _select_unmatched(on_page, impressions, "user_id")
        figures["interactions"] = {
            "placed": events.num_rows,
            "unshown": unshown.num_rows,
            "unshown_sample": _select_ends(_join_columns(unshown, unshown.column_names)),
            "met": on_page.num_rows,
            "strange": strange.num_rows,
            "strange_sample": _select_ends(_join_columns(strange, strange.column_names)),
        }
    return figures


def _collect_mixed_pages(impressions: pa.Table) -> dict[str, Any]:
    """The pages whose rows have different queries, users or systems."""
    pages = impressions.group_by("serp_id").aggregate([(name, "count_distinct") for name in _ONE_PER_PAGE])
    is_mixed = reduce(pc.or_, [pc.greater(pages[f"{name}_count_distinct"], 1) for name in _ONE_PER_PAGE])
    mixed = pages["serp_id"].filter(is_mixed)
    return {"whole_pages": pages.num_rows, "mixed": len(mixed), "mixed_sample": _select_ends(mixed)}


def _select_unmatched(events: pa.Table, impressions: pa.Table, column: str) -> pa.Table:
    """The events whose page has no impression with the same value of a column."""
    pair = ["serp_id", column]
    return events.select(pair).join(impressions.select(pair), pair, join_type="left anti")


def _collect_query_figures(tables: Tables, samples: Mapping[str, pa.Table]) -> Figures:
    """Keys of tables by query, lists whose query is unknown or unjudged, and lists that are all the same."""
    figures = {name: _collect_key_figures(rows, tables[name]) for name, rows in samples.items()}
    if "rankings" in samples:
        lists = _build_lists(samples["rankings"])
        figures["rankings"] |= _collect_list_figures(lists)
        for name, figure in {"queries": "unlisted", "judgments": "unlabelled"}.items():
            if name in samples:
                is_known = pc.is_in(lists["query_id"], samples[name]["query_id"])
                unknown = lists["query_id"].filter(pc.invert(is_known))
                figures["rankings"] |= {figure: len(unknown), f"{figure}_sample": _select_ends(unknown)}
        if "judgments" in samples:
            judgments = samples["judgments"]
            unranked = judgments.filter(pc.invert(pc.is_in(judgments["query_id"], lists["query_id"])))
            figures["judgments"] |= {
                "unranked": _sum(unranked["rows"]),
                "unranked_sample": _select_ends(unranked["query_id"]),
            }
    return figures


def _build_lists(rankings: pa.Table) -> pa.Table:
    """One row per list: how far its ranks reach beyond its length, and a hash of its set of documents."""
    columns = ["system", "query_id", "doc_id", "document"]
    distinct = rankings.group_by(columns).aggregate([("rank", "max"), ("rows", "sum")])
    # The sum of the hashes may overflow, which does no harm: equal sets have equal sums.
    lists = distinct.group_by(["system", "query_id"]).aggregate(
        [("document", "sum"), ("rank_max", "max"), ("rows_sum", "sum")]
    )
    return lists.append_column("hole", pc.subtract(lists["rank_max_max"].cast(pa.int64()), lists["rows_sum_sum"]))


def _collect_list_figures(lists: pa.Table) -> dict[str, Any]:
    equal = lists.group_by(["system", "document_sum"]).aggregate([([], "count_all")])
    systems = equal.group_by(["system"]).aggregate([("count_all", "max"), ("count_all", "sum")]).sort_by("system")
    deepest = pc.max(lists["hole"]).as_py()
    return {
        "lists": lists.num_rows,
        "asked": pc.count_distinct(lists["query_id"]).as_py(),
        "same_lists": {row["system"]: [row["count_all_max"], row["count_all_sum"]] for row in systems.to_pylist()},
        **({} if deepest is None else {"deepest": deepest}),
    }
