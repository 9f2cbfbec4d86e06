"""The sheet that judges fill: one row per query and document, as CSV or JSON lines.

It has no system names. A cell of a CSV file that a spreadsheet would take for a formula gets a leading apostrophe,
which is removed from ids when the sheet comes back.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from schemas.errors import ConfigurationError, InputError

CSV, JSON_LINES = ".csv", ".jsonl"
_FORMULA = re.compile(r"'*[=+\-@\t]")
APOSTROPHE = r"^'('*[=+\-@\t])"  # that of `neutralise_formula`; the group is the way back
_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


@dataclass(frozen=True)
class SheetRow:
    """One document to grade for one query; `query` and `title` are for reading, where they are known."""

    query_id: str
    query: str
    doc_id: str
    title: str
    chance: float
    grade: str = ""


COLUMNS = tuple(field.name for field in fields(SheetRow))


def require_sheet_path(path: Path) -> None:
    """Refuse a path that cannot be written as a sheet, or that has one already: it may be graded."""
    if path.suffix not in (CSV, JSON_LINES):
        raise ConfigurationError(
            f"cannot tell the format of {path.name!r}", where="--to", hint="end it in .csv or .jsonl"
        )
    if path.exists():
        raise ConfigurationError(
            f"{path} exists already and may contain grades", where="--to", hint="give another path"
        )


def write_sheet(path: Path, rows: Iterable[SheetRow]) -> None:
    """Write the sheet, without replacing an existing file."""
    require_sheet_path(path)
    lines = [_clean_row(row) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="") as file:
        if path.suffix == JSON_LINES:
            for row in lines:
                values = dict(zip(COLUMNS, astuple(row), strict=True)) | {"grade": None}
                file.write(json.dumps(values, ensure_ascii=False) + "\n")
            return
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in lines:
            texts = [neutralise_formula(text) for text in (row.query_id, row.query, row.doc_id, row.title)]
            writer.writerow([*texts, repr(row.chance), ""])


def neutralise_formula(text: str) -> str:
    """The text with an apostrophe before what a spreadsheet would evaluate."""
    return f"'{text}" if _FORMULA.match(text) else text


def read_grades(path: Path) -> dict[tuple[str, str], float]:
    """The grades of a sheet by query and document; rows without one are left out."""
    grades = {}
    for number, row in _read_rows(path):
        missing = [name for name in ("query_id", "doc_id", "grade") if name not in row]
        if missing:
            raise InputError(f"{path} has no column {missing[0]}", hint="give the sheets that `assay judge` wrote")
        text = "" if row["grade"] is None else str(row["grade"]).strip()
        if not text:
            continue
        try:
            grade = float(text)
        except ValueError:
            grade = math.nan
        if not math.isfinite(grade):
            raise InputError(f"the grade {text!r} is not a number", where=f"{path}, row {number}")
        query, doc = (str(row[name]) for name in ("query_id", "doc_id"))
        if path.suffix == CSV:
            query, doc = (re.sub(APOSTROPHE, r"\1", text) for text in (query, doc))
        grades[query, doc] = grade
    return grades


def _read_rows(path: Path) -> Sequence[tuple[int, dict[str, object]]]:
    """The rows of a sheet, numbered from 1."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix == CSV:
                return [(number, dict(row)) for number, row in enumerate(csv.DictReader(file), 1)]
            rows = [(number, json.loads(line)) for number, line in enumerate(file, 1) if line.strip()]
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise InputError(f"cannot read the sheet: {error}", where=str(path)) from None
    wrong = next((number for number, row in rows if not isinstance(row, dict)), None)
    if wrong is not None:
        raise InputError("the line is not a JSON object", where=f"{path}, row {wrong}")
    return rows


def _clean_row(row: SheetRow) -> SheetRow:
    """The row on one line; ids must stay as they are, so that one with a line break is refused."""
    for name in ("query_id", "doc_id"):
        if "\n" in getattr(row, name) or "\r" in getattr(row, name):
            raise InputError(f"the {name} {getattr(row, name)!r} has a line break, which no sheet can hold")
    query, title = (_BREAKS.sub(" ", text).strip() for text in (row.query, row.title))
    return SheetRow(row.query_id, query, row.doc_id, title, row.chance)
