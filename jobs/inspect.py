"""Look at files before they are configured: `assay inspect`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.support.options import debug_option, output_option
from schemas.printable import escape_line, format_count
from schemas.redact import cut_text

if TYPE_CHECKING:
    from rich.console import Console

    from pipelines.inputs.guess import Draft
    from pipelines.inputs.sample import ColumnProfile, FileSample

WIDEST, LONGEST = 40, 1_000  # characters of a value in the table and in JSON
LONGEST_NAME = 200  # characters of the name of a column in the table
NARROW = {"column": 24, "such as": 15, "smallest": 10, "largest": 10}  # least widths of columns that may be folded


@click.command("inspect")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "--draft", "draft_file", metavar="FILE", help="Write the draft configuration here instead of printing it."
)
@output_option
@debug_option
def command(files: tuple[str, ...], draft_file: str | None, output: str) -> None:
    """Show what is in files, and draft the configuration that reads them.

    \b
    assay inspect build/demo/logs/impressions build/demo/logs/interactions
    """
    from pipelines.inputs.guess import draft_input, write_draft
    from pipelines.inputs.sample import list_parts, profile_columns, sample_file

    samples = [sample_file(part) for path in files for part in list_parts(path)]
    profiles = [profile_columns(sample.rows) for sample in samples]
    drafts = [(sample, draft) for sample in samples for draft in draft_input(sample)]
    text = write_draft(drafts, Path(draft_file or "draft.yaml").parent)
    if draft_file is not None:
        _write_new(draft_file, text)
    if output == "json":
        described = [
            {"path": sample.path, "format": sample.format, "columns": list(map(_describe, columns))}
            for sample, columns in zip(samples, profiles, strict=True)
        ]
        click.echo(json.dumps({"files": described, "draft": text}, default=str, allow_nan=False))
        return
    for sample, columns in zip(samples, profiles, strict=True):
        _show_file(sample, columns, [draft for of, draft in drafts if of is sample])
    if draft_file is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"Draft written to {draft_file}; next: assay check --config {draft_file} --date DATE")


def _show_file(sample: FileSample, profiles: list[ColumnProfile], drafts: list[Draft]) -> None:
    from jobs.support.terminal import open_console, print_line

    console = open_console(wide=True)
    of = f" of {sample.file}" if sample.file else ""
    rows = sample.rows.num_rows
    read = "the first row" if rows == 1 else f"the first {format_count(rows, 'row')}" if rows else "no rows"
    print_line(console, f"{sample.path}: {sample.format}, {read}{of}")
    _show_columns(console, profiles)
    for draft in drafts:
        lacks = f", without {', '.join(column.name for column in draft.missing)}" if draft.missing else ""
        print_line(console, f"It looks like {draft.table}{lacks}.")


def _show_columns(console: Console, profiles: list[ColumnProfile]) -> None:
    """One row per column; names are never cut, and a narrow terminal gets fewer columns of this table."""
    from rich.table import Table as Grid

    rows = [_describe_cells(profile) for profile in profiles]
    headings = list(rows[0]) if rows else []
    longest = {heading: max(len(heading), *(len(row[heading]) for row in rows)) for heading in headings}
    grid = Grid()
    widths = fit_widths(longest, console.width)
    for heading, width in widths.items():
        grid.add_column(heading, overflow="fold", width=width)
    for row in rows:
        grid.add_row(*[row[heading] for heading in widths])
    console.print(grid, markup=False)


def fit_widths(longest: dict[str, int], width: int) -> dict[str, int]:
    """The columns of the table that fit, each with its width: names and examples get the room that there is."""
    from jobs.support.grids import choose_columns

    least = {heading: min(length, NARROW.get(heading, length)) for heading, length in longest.items()}
    shown = choose_columns(least, ("largest", "smallest", "distinct"), width - len(least))
    widths = {heading: least[heading] for heading in shown}
    room = width - sum(widths.values()) - 3 * len(widths) - 1  # beside the borders
    for heading in [name for name in NARROW if name in widths]:
        more = max(0, min(room, longest[heading] - widths[heading]))
        widths[heading], room = widths[heading] + more, room - more
    return widths


def _describe_cells(profile: ColumnProfile) -> dict[str, str]:
    """The cells of a column by their headings; long values are cut."""
    ends = ["" if end is None else str(end) for end in (profile.smallest, profile.largest)]
    values = ", ".join(cut_text(value, WIDEST) for value in profile.values[:3])
    cells = (profile.type, f"{profile.empty:,}", f"{profile.distinct:,}", *ends, values)
    shown = [cut_text(escape_line(cell), WIDEST) for cell in cells]
    name = cut_text(escape_line(profile.path), LONGEST_NAME)
    headings = ("column", "type", "empty", "distinct", "smallest", "largest", "such as")
    return dict(zip(headings, (name, *shown), strict=True))


def _describe(profile: ColumnProfile) -> dict[str, object]:
    """A profile for JSON, which has no infinite numbers; long values are cut."""
    ends = {"smallest": profile.smallest, "largest": profile.largest}
    for name, value in ends.items():
        if isinstance(value, str | bytes) or (isinstance(value, float) and not math.isfinite(value)):
            ends[name] = cut_text(str(value), LONGEST)
    return asdict(profile) | ends | {"values": [cut_text(value, LONGEST) for value in profile.values]}


def _write_new(path: str, text: str) -> None:
    from schemas.errors import ConfigurationError, PublishError

    try:
        with Path(path).open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise ConfigurationError("the file exists already", where=path, hint="give --draft a new name") from None
    except (OSError, ValueError) as error:  # the latter by a name that no file can have
        problem = f"cannot write the draft: {getattr(error, 'strerror', None) or error}"
        raise PublishError(problem, where=path, hint="give --draft a file in a folder that exists") from None
