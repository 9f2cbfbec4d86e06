"""Tables that a reader can sort and filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.report.markup import Markup, h, text


@dataclass(frozen=True)
class Number:
    """A number as it is shown and as it sorts."""

    value: float | None
    form: str = ".4f"
    tone: str = ""
    beside: str = ""  # shown small after it, such as an interval

    def cell(self) -> Markup:
        if self.value is None:
            return h("td", "–", data_v="", class_="n")
        beside = h("small", " " + self.beside) if self.beside else None
        shown = format(self.value, self.form)
        return h("td", shown, beside, data_v=f"{self.value:.10g}", class_=f"n {self.tone}".strip())


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, of: int | None = None, whole: str = "") -> Markup:
    """Rows under sortable headings, with a filter where there are more than a few.

    `of` is how many rows there are in all, and `whole` where the rest of them is.
    """
    if not rows:
        return h("p", "There is nothing to show.", class_="quiet")
    head = h("tr", [h("th", h("button", name, type="button"), scope="col") for name in columns])
    body = [h("tr", [_cell(value) for value in row]) for row in rows]
    note = (
        f"{len(rows):,} of {of:,} rows; the rest is in the table {whole}" if of is not None and of > len(rows) else ""
    )
    search = h("input", type="search", placeholder="filter", aria_label="filter the rows") if len(rows) > 5 else None
    tools = h("p", search, h("span", note, class_="quiet"), class_="tools") if search or note else None
    return h("div", tools, h("div", h("table", h("thead", head), h("tbody", body)), class_="wide"), class_="sortable")


def _cell(value: Any) -> Markup:
    if isinstance(value, Number):
        return value.cell()
    shown = value if isinstance(value, Markup) else text("–" if value is None else value)
    return h("td", shown, class_="long" if len(shown) > 60 else None)


def interval(low: float | None, high: float | None, form: str = ".4f") -> str:
    """An interval in brackets; nothing where it is not known."""
    return "" if low is None or high is None else f"[{low:{form}}, {high:{form}}]"
