"""Figures of keys and references: keys that repeat, and references to rows that do not exist.

They are checked on samples of whole queries and pages (`reference_samples.py`). So few rows are joined faster as Arrow
tables than in a shuffle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.quality.reference_samples import (
    BY_KEY,
    BY_PAGE,
    BY_QUERY,
    ONE_PER_PAGE,
    FileSamples,
    collect_keys,
    collect_pages,
    compute_share,
    max_rows,
)
from schemas.conform import ConformedTable
from schemas.table import Table

SAMPLED_SHARE = "looked_at"  # the figure with the share of the rows that was sampled; absent where all were

Tables = Mapping[str, Table]
Figures = dict[str, dict[str, Any]]


def collect_reference_figures(
    inputs: Mapping[str, ConformedTable],
    counts: Mapping[str, int],
    samples: Mapping[str, pa.Table | None],
    of_files: FileSamples,
    *,
    target: int,
) -> Figures:
    """Figures of the keys and references of all inputs; a sample has about `target` rows of the longest table.

    `of_files` has the sampled pages and events, by unit, of the tables whose files were counted by workers.
    """
    tables = {name: conformed.table for name, conformed in inputs.items()}
    figures = _collect_query_figures(tables, {name: rows for name, rows in samples.items() if rows is not None})
    by_page = {name: inputs[name] for name in BY_PAGE if name in inputs}
    if by_page:
        collected = collect_pages(by_page, counts, of_files, target)
        complete = collected.num_rows < max_rows(by_page, target)  # otherwise a reference may have been cut off
        figures |= _collect_page_figures(tables, collected, references=complete and len(by_page) == len(BY_PAGE))
    for name in BY_KEY.keys() & inputs.keys():
        keys = collect_keys(inputs[name], counts, of_files, target)
        figures.setdefault(name, {}).update(_collect_key_figures(keys, tables[name]))
    for group in (BY_QUERY, BY_PAGE, *((name,) for name in BY_KEY)):
        share = compute_share({name: counts[name] for name in group if name in figures}, target)
        for name in group:
            if name in figures and share < figures[name].get(SAMPLED_SHARE, 1):
                figures[name][SAMPLED_SHARE] = share
    return figures


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
    pages = impressions.group_by("serp_id").aggregate([(name, "count_distinct") for name in ONE_PER_PAGE])
    is_mixed = reduce(pc.or_, [pc.greater(pages[f"{name}_count_distinct"], 1) for name in ONE_PER_PAGE])
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
