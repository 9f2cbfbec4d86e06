"""Guess which contract a file fits, and draft the configuration to read it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from pipelines.inputs.format_registry import FORMATS
from pipelines.inputs.sample import ColumnProfile, FileSample, profile_columns
from schemas.inputs import INPUTS
from schemas.table import Column, Table

# Contract column -> the names that it usually has elsewhere, the most telling ones first.
USUAL_NAMES = {
    "serp_id": ("serp_id", "page_id", "search_id", "request_id", "impression_id", "page", "req_id"),
    "query_id": ("query_id", "query-id", "qid", "query", "user_query", "search_term", "keyword", "q"),
    "doc_id": (
        "doc_id",
        "docid",
        "document_id",
        "item_id",
        "product_id",
        "object_id",
        "corpus-id",
        "sku",
        "asin",
        "id",
        "doc",
    ),
    "user_id": ("user_id", "client_id", "visitor_id", "user", "uid"),
    "position": ("position", "pos", "rank", "ordinal", "slot"),
    "ts": ("ts", "timestamp", "event_time", "time", "created_at", "datetime", "t", "when"),
    "kind": ("kind", "action", "action_name", "event_type", "event_name", "event", "type"),
    "event_id": ("event_id", "uuid", "id"),
    "grade": ("grade", "relevance", "label", "rating", "judgment", "rel", "score"),
    "system": ("system", "ranker", "run", "run_tag", "model", "variant"),
    "rank": ("rank", "position"),
    "score": ("score", "similarity"),
    "weight": ("weight", "frequency", "traffic"),
    "title": ("title", "name"),
    "session_id": ("session_id", "session"),
    "dwell_seconds": ("dwell_seconds", "dwell_time", "dwell"),
}
KINDS = {
    "click": re.compile(r"(?i)^(item_?|product_?|select_?)?(click|select|open)(_?item|ed)?$|^select_item$"),
    "cart": re.compile(r"(?i)cart|basket"),
    "purchase": re.compile(r"(?i)^(purchase|order|buy|bought|checkout)"),
}
DERIVED_ID = "sha2(to_json(struct(*)), 256)"  # of an event without one: equal rows are one event
# Epoch times by the size of the largest one, each with the function that reads it.
UNITS = ((1e11, "timestamp_seconds"), (1e14, "timestamp_millis"), (1e17, "timestamp_micros"))


@dataclass(frozen=True)
class Draft:
    """The contract that a file fits best, and how its columns are read."""

    table: str
    explode: str | None
    columns: Mapping[str, str | dict[str, object]]
    missing: tuple[Column, ...] = ()  # required columns that the file seems not to have
    matched: int = 0  # columns that it has


def draft_input(sample: FileSample) -> list[Draft]:
    """The contracts that a file fits: all that a preset gives, or the one with the fewest columns missing."""
    readers = FORMATS[sample.format].readers
    if readers is not None:
        is_ratings = "judgmentRatings" in sample.rows.column_names
        names = [name for name in readers if (name == "judgments") == is_ratings] or list(readers)
        return [Draft(name, None, {}) for name in names]
    profiles = profile_columns(sample.rows)
    drafts = [_draft_table(table, profiles, sample.format) for table in INPUTS.values() if table.name != "opinions"]
    return [max(drafts, key=lambda draft: draft.matched - len(draft.missing))]


def write_draft(drafts: Sequence[tuple[FileSample, Draft]], folder: Path = Path()) -> str:
    """The drafts as YAML for a file in this folder; what is missing is a comment at its place."""
    lines = ["inputs:"]
    for sample, draft in drafts:
        path = sample.path if Path(sample.path).is_absolute() else os.path.relpath(sample.path, folder)
        source: dict[str, object] = {"path": path}
        source |= {} if sample.format == "parquet" else {"format": sample.format}
        source |= {} if draft.explode is None else {"explode": draft.explode}
        source |= {"columns": dict(draft.columns)} if draft.columns else {}
        text = yaml.safe_dump({draft.table: source}, sort_keys=False, allow_unicode=True, width=100)
        lines += [f"  {line}" for line in text.splitlines()]
        if draft.missing and not draft.columns:
            lines.append("    columns:")
        lines += [f"      # {column.name}: ???  # missing: {column.meaning}" for column in draft.missing]
    return "\n".join(lines) + "\n"


def _draft_table(table: Table, profiles: Sequence[ColumnProfile], source_format: str) -> Draft:
    """Find the columns of a contract by their usual names."""
    arrays = [profile.path.partition("[]")[0] for profile in profiles if "[]" in profile.path]
    array = arrays[0] if arrays and table.unfold else None
    readable = [profile for profile in profiles if "[]" not in profile.path or profile.path.startswith(f"{array}[]")]
    available = len(readable)
    columns: dict[str, str | dict[str, object]] = {}
    missing = []
    for column in table.columns:
        profile = _find_profile(column.name, readable, array)
        if profile is not None:
            readable.remove(profile)
            columns[column.name] = _write_column(column.name, profile, array, as_text=source_format in ("json", "csv"))
        elif array is not None and column.name in table.unfold.values():
            columns[column.name] = "pos + 1"
        elif column.name == "event_id":
            columns[column.name] = DERIVED_ID
        elif not column.optional:
            missing.append(column)
    if table.one_of and not set(table.one_of) & set(columns):
        missing.append(next(column for column in table.columns if column.name == table.one_of[0]))
    renamed = {name: text for name, text in columns.items() if text != name}
    return Draft(table.name, array, renamed, tuple(missing), matched=available - len(readable))


def _find_profile(name: str, profiles: Sequence[ColumnProfile], array: str | None) -> ColumnProfile | None:
    """The column or field that has the most telling of the usual names."""
    for usual in USUAL_NAMES.get(name, (name,)):
        for profile in profiles:
            if usual in _list_names(profile.path, array):
                return profile
    return None


def _list_names(path: str, array: str | None) -> set[str]:
    """The names that a column may be known by: its own, and what an `id` is the id of."""
    *parents, own = path.replace("[]", "").lower().split(".")
    names = {own}
    if own == "id" and parents:
        names.add(f"{parents[-1]}_id")
    if path == f"{array}[]" or (path.startswith(f"{array}[]") and own in ("id", "key")):
        names.add("doc_id")
    return names


def _write_column(name: str, profile: ColumnProfile, array: str | None, *, as_text: bool) -> str | dict[str, object]:
    """The column as it is, or an expression that makes it fit."""
    path = profile.path.replace(f"{array}[]", "item")
    quoted = ".".join(part if re.fullmatch(r"\w+", part) else f"`{part}`" for part in path.split("."))
    if name == "ts" and profile.is_number:
        unit = next((unit for limit, unit in UNITS if profile.largest < limit), "timestamp_micros")
        return f"{unit}(bigint({quoted}))" if as_text else f"{unit}({quoted})"
    if name == "position" and profile.is_number and profile.smallest == 0:
        return f"{quoted} + 1"
    if name == "query_id" and path.rpartition(".")[2].lower() not in ("query_id", "query-id", "qid"):
        return f"lower(trim({quoted}))"
    if name == "kind":
        kinds = {value: kind for value in profile.values for kind, fits in KINDS.items() if fits.search(value)}
        changed: dict[str, object] = {value: kind for value, kind in kinds.items() if value != kind}
        return {"from": quoted, "values": changed} if changed else path
    return quoted if "." in path else path
