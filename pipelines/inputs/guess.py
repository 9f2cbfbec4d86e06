"""Guess which contract a file fits, and draft the configuration to read it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import yaml

from pipelines.inputs.foreign import FILES
from pipelines.inputs.format_registry import FORMATS
from pipelines.inputs.formats.serp_arrays import FLAGS, NAMES
from pipelines.inputs.sample import ColumnProfile, FileSample, profile_columns
from schemas.inputs import INPUTS
from schemas.table import Column, Table
from schemas.usual_names import USUAL_NAMES, split_words

# Option of `serp_arrays` -> the contract column that it is about.
PARTS = {
    "page": "serp_id",
    "query": "query_id",
    "documents": "doc_id",
    "time": "ts",
    "user": "user_id",
    "position": "position",
    "system": "system",
}
KINDS = {
    "click": re.compile(r"(?i)(^|_)(click|select|open|tap)(ed|through)?(_|$)"),
    "cart": re.compile(r"(?i)cart|basket"),
    "purchase": re.compile(r"(?i)^(purchase|order|buy|bought|checkout)"),
}
DERIVED_ID = "sha2(to_json(struct(*)), 256)"  # of an event without one: equal rows are one event
SERVING = "production"  # the name of the system that served a log without one
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
    where: str | None = None
    format: str | None = None  # where it is not that of the sample
    options: Mapping[str, str] = field(default_factory=dict)


def draft_input(sample: FileSample) -> list[Draft]:
    """The contracts that a file fits: all that a preset gives, or the one with the fewest columns missing."""
    readers = FORMATS[sample.format].readers
    if readers is not None:
        is_ratings = "judgmentRatings" in sample.rows.column_names
        names = sample.tables or [name for name in readers if (name == "judgments") == is_ratings] or list(readers)
        return [Draft(name, None, _name_system(name, sample), options=sample.options) for name in names]
    profiles = profile_columns(sample.rows)
    clicked = _draft_clicked(sample, profiles)
    if clicked:
        return clicked
    drafts = [_draft_table(table, profiles, sample.format) for table in INPUTS.values() if table.name != "opinions"]
    best = max(drafts, key=lambda draft: draft.matched - len(draft.missing))
    return [replace(best, options=sample.options)]


def write_draft(drafts: Sequence[tuple[FileSample, Draft]], folder: Path = Path()) -> str:
    """The drafts as YAML for a file in this folder; what is missing is a comment at its place.

    Files that are read in the same way are read together. Others for the same table are comments: a table has one
    source.
    """
    lines = ["inputs:"]
    has_lists = any(draft.table == "rankings" for _, draft in drafts)
    for table in dict.fromkeys(draft.table for _, draft in drafts):
        sections: list[tuple[Draft, dict[str, object], list[str], bool]] = []
        for sample, draft in drafts:
            if draft.table == table:
                source = _describe_source(sample, draft)
                is_nameless = table == "impressions" and not has_lists and not _has_system(sample, draft)
                paths = next((paths for _, same, paths, _ in sections if same == source), None)
                if paths is None:
                    sections.append((draft, source, paths := [], is_nameless))
                paths.append(sample.path if Path(sample.path).is_absolute() else os.path.relpath(sample.path, folder))
        best = min(range(len(sections)), key=lambda at: len(sections[at][0].missing))
        for number, (draft, source, paths, is_nameless) in enumerate(sections):
            path = paths[0] if len(paths) == 1 else paths
            text = _write_section(draft, {"path": path} | source, is_nameless=is_nameless)
            lines += text if number == best else [f"  # or{text[0]}", *(f"  #   {line}" for line in text[1:])]
    return "\n".join(lines) + "\n"


def _describe_source(sample: FileSample, draft: Draft) -> dict[str, object]:
    """The section of an input, without its path."""
    name = draft.format or sample.format
    source: dict[str, object] = {} if name == "parquet" else {"format": name}
    source |= {"options": dict(draft.options)} if draft.options else {}
    source |= {} if draft.explode is None else {"explode": draft.explode}
    source |= {} if draft.where is None else {"where": draft.where}
    return source | ({"columns": dict(draft.columns)} if draft.columns else {})


def _write_section(draft: Draft, source: Mapping[str, object], *, is_nameless: bool) -> list[str]:
    text = yaml.safe_dump({draft.table: dict(source)}, sort_keys=False, allow_unicode=True, width=100)
    lines = [f"  {line}" for line in text.splitlines()]
    names: Mapping[str, str] = {column.name: column.name for column in draft.missing}
    section, last = "columns", list(source)[-1]
    if draft.format == "serp_arrays":  # its options name the columns
        names, section = {contract: part for part, contract in PARTS.items()}, "options"
    if draft.missing and section == "options":
        lines += [] if last == section else [f"    {section}:"]
        lines += _mark_missing(draft, names)
    if (draft.missing and section == "columns") or is_nameless:
        lines += [] if last == "columns" else ["    columns:"]
    if is_nameless:
        lines.append(
            f"""      system: "'{SERVING}'"  # what served these pages: to evaluate it, a system needs a name"""
        )
    return lines + (_mark_missing(draft, names) if section == "columns" else [])


def _mark_missing(draft: Draft, names: Mapping[str, str]) -> list[str]:
    return [f"      # {names[column.name]}: ???  # missing: {column.meaning}" for column in draft.missing]


def _has_system(sample: FileSample, draft: Draft) -> bool:
    """Whether a column says which system served a page."""
    if draft.format == "serp_arrays":
        return "system" in draft.options or _find_usual("system", sample.rows) is not None
    is_preset = FORMATS[sample.format].readers is not None
    return "system" in draft.columns or (not is_preset and "system" in sample.rows.column_names)


def _name_system(table: str, sample: FileSample) -> dict[str, str | dict[str, object]]:
    """UBI has no column for the system; the application is what its exports usually tell apart."""
    has_application = {"application", "_source.application"} & set(sample.rows.column_names)
    return {"system": "application"} if sample.format == "ubi" and has_application and table == "impressions" else {}


def _draft_clicked(sample: FileSample, profiles: Sequence[ColumnProfile]) -> list[Draft]:
    """Pages and clicks of one table, where a column says what was clicked; none without such a column."""
    parts = [profile for profile in profiles if "." not in profile.path.partition("[]")[0]]
    clicked = next((profile for usual in NAMES["clicked"] for profile in parts if _is_click(profile, usual)), None)
    arrays = {profile.path.partition("[]")[0] for profile in parts if "[]" in profile.path}
    if clicked is None:
        return []
    columns: dict[str, str] = {}
    array = clicked.path.partition("[]")[0] if "[]." in clicked.path else None
    for part, contract in PARTS.items():
        names = (*NAMES[part], *USUAL_NAMES[contract])
        readable = [profile for profile in parts if profile is not clicked and profile.path.partition("[]")[0] != array]
        if part != "documents":
            readable = [profile for profile in readable if "[]" not in profile.path]
        profile = next((one for usual in names for one in readable if usual in _list_names(one.path, None)), None)
        if profile is not None:
            columns[part] = profile.path.partition("[]")[0]
    if array is not None:
        columns["documents"] = array
    columns["clicked"] = clicked.path.partition("[]")[0] if array is None else ""
    session = _find_profile("session_id", parts, None)
    if "page" not in columns and session is not None and _is_page(sample, session.path, columns):
        columns["page"] = session.path
    if "documents" not in columns or ("[]" in clicked.path) != (columns["documents"] in arrays):
        return []
    missing = [] if "query" in columns else [INPUTS["impressions"]["query_id"]]
    if missing and not ("page" in columns and ("position" in columns or columns["documents"] in arrays)):
        return []
    options = {part: name for part, name in columns.items() if name and name != _find_usual(part, sample.rows)}
    if sample.format != FILES.get(Path(sample.file or sample.path).suffix, "json"):
        options = {"files": sample.format} | options
    options |= sample.options
    return [
        Draft(name, None, {}, tuple(missing), format="serp_arrays", options=options)
        for name in ("impressions", "interactions")
    ]


def _is_click(profile: ColumnProfile, usual: str) -> bool:
    """Whether this is the column of that name and has flags, or is an array or a field of one."""
    is_flag = {value.lower() for value in profile.values} <= set(FLAGS)
    return usual in _list_names(profile.path, None) and (is_flag or profile.path.endswith("[]"))


def _is_page(sample: FileSample, session: str, columns: Mapping[str, str]) -> bool:
    """Whether every session of the sample has one query, and each of its positions once: it is a page then."""
    names = [name for name in (columns.get("query"), columns.get("position")) if name is not None]
    if len(names) < 2 or not {session, *names} <= set(sample.rows.column_names):
        return False
    counts = sample.rows.group_by(session).aggregate([(name, "count_distinct") for name in names] + [([], "count_all")])
    has_one_query = pc.all(pc.equal(counts[f"{names[0]}_count_distinct"], 1)).as_py()
    return bool(has_one_query and pc.all(pc.equal(counts[f"{names[1]}_count_distinct"], counts["count_all"])).as_py())


def _find_usual(part: str, rows: pa.Table) -> str | None:
    """The column that the preset takes for this part by itself."""
    return next((name for name in NAMES[part] if name in rows.column_names), None)


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
    where = _keep_kinds(kinds) if (kinds := _find_profile("kind", profiles, array)) and "kind" in columns else None
    return Draft(table.name, array, renamed, tuple(missing), available - len(readable), where)


def _find_profile(name: str, profiles: Sequence[ColumnProfile], array: str | None) -> ColumnProfile | None:
    """The column or field that has the most telling of the usual names."""
    for usual in USUAL_NAMES.get(name, (name,)):
        for profile in profiles:
            if usual in _list_names(profile.path, array):
                return profile
    return None


def _keep_kinds(profile: ColumnProfile) -> str | None:
    """The condition that leaves out events of other kinds, which would be quarantined; None where there are none."""
    kinds = _map_kinds(profile)
    if not kinds or len(kinds) == len(profile.values):
        return None
    listed = ", ".join(f"'{value}'" for value in kinds if "'" not in value)
    return f"{_quote_path(profile.path)} in ({listed})"


def _map_kinds(profile: ColumnProfile) -> dict[str, str]:
    """The kind that each value of a column stands for, without those that stand for none."""
    texts = {value: split_words(value) for value in profile.values}
    return {value: kind for value, text in texts.items() for kind, fits in reversed(KINDS.items()) if fits.search(text)}


def _list_names(path: str, array: str | None) -> set[str]:
    """The names that a column may be known by: its own, and what an `id` is the id of."""
    *parents, own = [split_words(part) for part in path.replace("[]", "").split(".")]
    names = {own}
    if own == "id" and parents:
        names.add(f"{parents[-1]}_id")
    if path == f"{array}[]" or (path.startswith(f"{array}[]") and own in ("id", "key")):
        names.add("doc_id")
    return names


def _quote_path(path: str) -> str:
    return ".".join(part if re.fullmatch(r"\w+", part) else f"`{part}`" for part in path.split("."))


def _write_column(name: str, profile: ColumnProfile, array: str | None, *, as_text: bool) -> str | dict[str, object]:
    """The column as it is, or an expression that makes it fit."""
    path = profile.path.replace(f"{array}[]", "item")
    quoted = _quote_path(path)
    if name == "ts" and profile.is_number:
        unit = next((unit for limit, unit in UNITS if profile.largest < limit), "timestamp_micros")
        return f"{unit}(bigint({quoted}))" if as_text else f"{unit}({quoted})"
    if name == "position" and profile.is_number and profile.smallest == 0:
        return f"{quoted} + 1"
    if name == "query_id" and path.rpartition(".")[2].lower() not in ("query_id", "query-id", "queryid", "qid"):
        return f"lower(trim({quoted}))"
    if name == "kind":
        changed: dict[str, object] = {value: kind for value, kind in _map_kinds(profile).items() if value != kind}
        return {"from": quoted, "values": changed} if changed else path
    return quoted if "." in path else path
