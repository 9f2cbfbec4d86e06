"""A fuzzer of input tables: each corruption is one thing that goes wrong with logs, chosen by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tests.helpers.small_data import LOG, build_clean_tables

FORMATS = ("csv", "json", "parquet")
TABLES = ("impressions", "interactions", "rankings", "judgments")
TIMES = {"seconds": 1, "millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}
PLACES = {"impressions": "position", "rankings": "rank"}


@dataclass
class Draft:
    """A table to be written: its rows, the encoding of the file, and how its text is changed."""

    table: str
    rows: pd.DataFrame
    format: str
    random: random.Random
    encoding: str = "utf-8"
    text: Callable[[str], str] = str
    description: str = ""

    def choose_rows(self) -> list[bool]:
        """One row, a fifth of them, half, or all."""
        part = self.random.choice([0.0, 0.2, 0.5, 1.0])
        mask = [self.random.random() < part for _ in range(len(self.rows))]
        mask[self.random.randrange(len(mask))] = True
        return mask

    def choose_column(self) -> str:
        return self.random.choice(list(self.rows.columns))

    def change(self, column: str, value: Callable[[object], object]) -> None:
        """Change a column in some rows."""
        self.description += f" {column}"
        kept = self.rows[column].astype(object)
        mask = self.choose_rows()
        values = [value(old) if hit else old for old, hit in zip(kept, mask, strict=True)]
        self.rows[column] = pd.Series(values, index=self.rows.index, dtype=object)


def types(draft: Draft) -> None:
    """Text where another type is expected."""
    values = ["abc", "[]", "true", "NaN", "<script>", "1e999", "-", " "]
    draft.change(draft.choose_column(), lambda _: draft.random.choice(values))


def nulls(draft: Draft) -> None:
    """Values that are missing."""
    draft.change(draft.choose_column(), lambda _: None)


def encodings(draft: Draft) -> None:
    """Text that was written or read in another encoding."""
    kind = draft.random.choice(["latin-1", "utf-16", "twice", "control"])
    draft.description += f" {kind}"
    if kind in ("twice", "control") or draft.format == "parquet":
        names = [c for c in ("query_id", "doc_id", "serp_id") if c in draft.rows.columns]

        def garbled(old: object) -> object:
            return str(old) + "\x00" if kind == "control" else f"ö{old}".encode().decode("latin-1")

        draft.change(draft.random.choice(names), garbled)
    else:
        draft.encoding = kind


def duplicated_columns(draft: Draft) -> None:
    """A column that occurs twice, under the same name or one that differs by case."""
    column = draft.choose_column()
    draft.description += f" {column}"
    if draft.format == "csv":
        draft.text = lambda text: text.replace(column, f"{column},{column}", 1)
    else:
        draft.rows[column.upper()] = draft.rows[column]


def dropped_columns(draft: Draft) -> None:
    """A column that is missing."""
    column = draft.choose_column()
    draft.description += f" {column}"
    draft.rows = draft.rows.drop(columns=column)


def shuffled_days(draft: Draft) -> None:
    """Times that are days off."""
    if draft.table in LOG:
        draft.change(
            "ts", lambda old: pd.Timestamp(str(old)) + pd.Timedelta(days=draft.random.choice([-30, -5, 4, 40]))
        )
    else:
        nulls(draft)


def negative_positions(draft: Draft) -> None:
    column = PLACES.get(draft.table)
    draft.change(column or draft.choose_column(), lambda _: -draft.random.randint(1, 9) if column else None)


def huge_positions(draft: Draft) -> None:
    column = PLACES.get(draft.table)
    draft.change(
        column or draft.choose_column(), lambda _: draft.random.choice([10**6, 2**31, 10**18]) if column else None
    )


def time_units(draft: Draft) -> None:
    """Times as numbers, in one unit or another."""
    if draft.table not in LOG:
        return types(draft)
    unit = draft.random.choice(list(TIMES))
    draft.description += f" {unit}"
    seconds = [pd.Timestamp(str(t)).timestamp() for t in draft.rows["ts"]]
    draft.rows["ts"] = [int(second * TIMES[unit]) for second in seconds]
    return None


def zero_based(draft: Draft) -> None:
    """Positions that count from 0; of ranks only the order matters."""
    column = PLACES.get(draft.table)
    if column is None:
        types(draft)
    else:
        draft.rows[column] = draft.rows[column] - 1


def broken_lines(draft: Draft) -> None:
    """Lines that are cut off, or have an extra field."""
    if draft.format == "parquet":
        return nulls(draft)

    def cut(text: str) -> str:
        lines = text.splitlines()
        for at in draft.random.sample(range(1, len(lines)), 5):
            # A line of CSV that ends within its last value looks like a whole one.
            end = lines[at].rindex(",") if draft.format == "csv" else len(lines[at])
            kept = lines[at][: draft.random.randrange(1, end)]
            lines[at] = kept if draft.random.random() < 0.5 else f"{lines[at]},x"
        return "\n".join(lines) + "\n"

    draft.text = cut
    return None


def swapped_columns(draft: Draft) -> None:
    """Two columns under each other's name."""
    one, other = draft.random.sample(list(draft.rows.columns), 2)
    draft.description += f" {one} {other}"
    draft.rows = draft.rows.rename(columns={one: other, other: one})[list(draft.rows.columns)]


def repeated_rows(draft: Draft) -> None:
    """Rows that were loaded twice."""
    draft.rows = pd.concat([draft.rows, draft.rows[draft.choose_rows()]])


CORRUPTIONS = (
    types, nulls, encodings, duplicated_columns, dropped_columns, shuffled_days, negative_positions, huge_positions,
    time_units, zero_based, broken_lines, swapped_columns, repeated_rows,
)  # fmt: skip


def corrupt(seed: int, folder: Path) -> tuple[str, str, str, str]:
    """Write one corrupted table to a file; returns its name, format and path, and a description."""
    generator = random.Random(seed)
    table = generator.choice(TABLES)
    draft = Draft(table, build_clean_tables()[table], generator.choice(FORMATS), generator)
    corruption = generator.choice(CORRUPTIONS)
    corruption(draft)
    target = folder / f"{seed}.{draft.format}"
    write(draft, target)
    return table, draft.format, str(target), f"{corruption.__name__}{draft.description} in {table}.{draft.format}"


def write(draft: Draft, target: Path) -> None:
    """Write the draft to a file."""
    rows = draft.rows
    if draft.format == "parquet":
        mixed = {c: str for c in rows.columns if rows[c].map(type).nunique() > 1 and rows[c].dtype == object}
        rows.where(rows.notna(), None).astype(mixed).to_parquet(target, index=False, coerce_timestamps="us")
        return
    if draft.format == "csv":
        text = rows.to_csv(index=False)
    else:
        records = [{k: v for k, v in row.items() if pd.notna(v)} for row in rows.to_dict("records")]
        text = "\n".join(json.dumps(record, ensure_ascii=False, default=str) for record in records) + "\n"
    target.write_bytes(draft.text(text).encode(draft.encoding, errors="replace"))
