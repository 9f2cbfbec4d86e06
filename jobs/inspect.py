"""Look at files before they are configured: `assay inspect`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.support.options import debug_option, output_option
from schemas.redact import cut_text

if TYPE_CHECKING:
    from pipelines.inputs.guess import Draft
    from pipelines.inputs.sample import ColumnProfile, FileSample

WIDEST, LONGEST = 40, 1_000  # characters of a value in the table and in JSON


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
    click.echo(text if draft_file is None else f"Draft written to {draft_file}", nl=draft_file is not None)


def _show_file(sample: FileSample, profiles: list[ColumnProfile], drafts: list[Draft]) -> None:
    from rich.table import Table as Grid

    from jobs.support.terminal import open_console, print_line
    from schemas.printable import escape_line

    console = open_console(wide=True)
    of = f" of {sample.file}" if sample.file else ""
    print_line(console, f"{sample.path}: {sample.format}, the first {sample.rows.num_rows:,} rows{of}")
    grid = Grid("column", "type", "empty", "distinct", "smallest", "largest", "such as")
    for profile in profiles:
        ends = ["" if end is None else str(end) for end in (profile.smallest, profile.largest)]
        cells = [profile.path, profile.type, f"{profile.empty:,}", f"{profile.distinct:,}", *ends]
        cells.append(", ".join(cut_text(value, WIDEST) for value in profile.values[:3]))
        grid.add_row(*[cut_text(escape_line(cell), WIDEST) for cell in cells])
    console.print(grid, markup=False)
    for draft in drafts:
        lacks = f", without {', '.join(column.name for column in draft.missing)}" if draft.missing else ""
        print_line(console, f"It looks like {draft.table}{lacks}.")


def _describe(profile: ColumnProfile) -> dict[str, object]:
    """A profile for JSON, which has no infinite numbers; long values are cut."""
    ends = {"smallest": profile.smallest, "largest": profile.largest}
    for name, value in ends.items():
        if isinstance(value, str | bytes) or (isinstance(value, float) and not math.isfinite(value)):
            ends[name] = cut_text(str(value), LONGEST)
    return asdict(profile) | ends | {"values": [cut_text(value, LONGEST) for value in profile.values]}


def _write_new(path: str, text: str) -> None:
    from schemas.errors import ConfigurationError

    try:
        with Path(path).open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise ConfigurationError("the file exists already", where=path, hint="give --draft a new name") from None
