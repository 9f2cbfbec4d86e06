"""Tables that a reader can sort and filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.report.markup import Markup, h, text
from udfs.statistics.plan import EVERYTHING


@dataclass(frozen=True)
class Number:
    """A number as it is shown and as it sorts."""

    value: float | None
    form: str = ".4f"
    tone: str = ""
    beside: str = ""  # shown small after it, such as an interval
    label: str = ""  # shown instead of the number

    def render(self) -> Markup:
        """The cell of a table."""
        if self.value is None:
            return h("td", "–", data_v="", class_="n")
        beside = h("small", " " + self.beside) if self.beside else None
        label = self.label or format(self.value, self.form)
        return h("td", label, beside, data_v=f"{self.value:.10g}", class_=f"n {self.tone}".strip())


def render_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, of: int | None = None, whole: str = ""
) -> Markup:
    """Rows under sortable headings, with a filter where there are more than five.

    `of` is the number of rows before shortening, and `whole` names the table that has them all.
    """
    if not rows:
        return h("p", "No rows.", class_="quiet")
    head = h("tr", [h("th", h("button", name, type="button"), scope="col") for name in columns])
    body = [h("tr", [_render_cell(value) for value in row]) for row in rows]
    note = f"{len(rows):,} of {of:,} rows; all are in the table {whole}" if of is not None and of > len(rows) else ""
    search = h("input", type="search", placeholder="filter", aria_label="filter the rows") if len(rows) > 5 else None
    tools = h("p", search, h("span", note, class_="quiet"), class_="tools") if search or note else None
    return h("div", tools, h("div", h("table", h("thead", head), h("tbody", body)), class_="wide"), class_="sortable")


def _render_cell(value: Any) -> Markup:
    if isinstance(value, Number):
        return value.render()
    content = value if isinstance(value, Markup) else text("–" if value is None else value)
    return h("td", content, class_="long" if len(content) > 60 else None)


def format_interval(low: float | None, high: float | None, form: str = ".4f") -> str:
    """An interval in brackets; empty where it is undefined."""
    return "" if low is None or high is None else f"[{low:{form}}, {high:{form}}]"


def format_segment(row: Mapping[str, Any]) -> str:
    """The segment of a row, as `column = value`; `all` for all queries."""
    return "all" if row["segment"] == EVERYTHING else f"{row['segment']} = {row['value']}"


def format_p(value: float) -> str:
    """A p-value with four digits, `< .0001` below them."""
    return "< .0001" if value < 1e-4 else f"{value:.4f}"


def format_ci(config: Mapping[str, Any]) -> str:
    """The heading of intervals by the configured confidence, as `95 % CI`."""
    return f"{100 * float(config.get('statistics', {}).get('confidence', 0.95)):g} % CI"
