"""Tables that fit the terminal: too wide a table is turned, or split into several; no number or name is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from schemas.printable import escape_line

if TYPE_CHECKING:
    from rich.console import Console

FOLDS = (24, 12)  # columns of a name of a system: longer ones are folded, shorter where that makes the table fit


@dataclass(frozen=True)
class Grid:
    """A table of texts with a name for each row and a heading for each column.

    Names of systems, which are from the data, may be folded into several lines; metrics and numbers never are.
    """

    title: str
    corner: str  # what the names are
    names: Sequence[str]
    headings: Sequence[str]
    cells: Sequence[Sequence[str]]
    across: str = ""  # what the headings are
    fold_names: bool = False
    fold_headings: bool = False
    fold: int = FOLDS[0]

    def turn(self) -> Grid:
        """The same with rows as columns."""
        return replace(
            self,
            corner=self.across,
            across=self.corner,
            names=self.headings if self.fold_headings else [" ".join(text.split("\n")) for text in self.headings],
            headings=self.names,
            cells=list(zip(*self.cells, strict=True)),
            fold_names=self.fold_headings,
            fold_headings=self.fold_names,
        )

    def select_columns(self, first: int, last: int) -> Grid:
        """The same with some of the columns."""
        cells = [row[first:last] for row in self.cells]
        return replace(self, headings=self.headings[first:last], cells=cells)

    def measure(self) -> tuple[int, list[int]]:
        """The widths of the names and of each column."""
        fold_names, fold_headings = (self.fold if folds else None for folds in (self.fold_names, self.fold_headings))
        names = max(_measure(text, fold_names) for text in (self.corner, *self.names))
        columns = [
            max(_measure(heading, fold_headings), *(_measure(row[place]) for row in self.cells))
            for place, heading in enumerate(self.headings)
        ]
        return names, columns


def fit_grid(grid: Grid, width: int) -> list[Grid]:
    """The grid as it is if it fits, else turned if that fits, else in parts: as few as possible."""
    if not grid.names:
        return []
    ways = [_split(replace(way, fold=fold), width) for fold in FOLDS for way in (grid, grid.turn())]
    return min(ways, key=len)


def total_width(widths: Sequence[int]) -> int:
    """The width of a table with these columns, as it is printed."""
    return sum(widths) + 2 * len(widths) + 1


def choose_columns(widths: Mapping[str, int], least: Sequence[str], width: int) -> list[str]:
    """The columns that fit: those in `least` are left out, in this order, as far as needed."""
    kept = dict(widths)
    for heading in least:
        if total_width(list(kept.values())) <= width:
            break
        kept.pop(heading, None)
    return list(kept)


def show_grid(console: Console, grid: Grid) -> None:
    """Print a grid so that it fits the console."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    for number, part in enumerate(fit_grid(grid, console.width)):
        names, columns = part.measure()
        title = escape(escape_line(part.title)) if not number else None
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column(part.corner, width=names, overflow="fold")
        for heading, wide in zip(part.headings, columns, strict=True):
            table.add_column(_clean(heading, part.fold_headings), justify="right", width=wide, overflow="fold")
        for name, row in zip(part.names, part.cells, strict=True):
            table.add_row(_clean(name, part.fold_names), *map(_clean, row))
        console.print(table, width=max(console.width, total_width([names, *columns])), crop=False)


def _split(grid: Grid, width: int) -> list[Grid]:
    """The grid in parts of as many columns as fit, at least one."""
    names, columns = grid.measure()
    parts, first = [], 0
    for place in range(1, len(columns) + 1):
        if place == len(columns) or total_width([names, *columns[first : place + 1]]) > width:
            parts.append(grid.select_columns(first, place))
            first = place
    return parts


def _clean(text: str, from_data: bool = False) -> str:
    """The text without what could control the terminal; line breaks stay in texts of the program only."""
    from rich.markup import escape

    return escape(escape_line(text) if from_data else "\n".join(escape_line(line) for line in text.split("\n")))


def _measure(text: str, fold: int | None = None) -> int:
    from rich.cells import cell_len

    if fold is not None:  # a name from the data
        return min(cell_len(escape_line(text)), fold)
    return max(cell_len(escape_line(line)) for line in text.split("\n"))
