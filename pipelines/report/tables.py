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

    def render(self, name: str | None = None) -> Markup:
        """The cell of a table; `name` is shown before it on a phone."""
        if self.value is None:
            return h("td", "–", data_v="", class_="n", data_name=name)
        beside = h("small", " " + self.beside) if self.beside else None
        label = self.label or format(self.value, self.form)
        return h("td", label, beside, data_v=f"{self.value:.10g}", class_=f"n {self.tone}".strip(), data_name=name)


def render_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    of: int | None = None,
    whole: str = "",
    stack: bool = False,
) -> Markup:
    """Rows under sortable headings, with a filter where there are more than five.

    `of` is the number of rows before shortening, and `whole` names the table that has them all. On a phone the cells of
    a row stand below each other if `stack` is set, so that none is off the screen.
    """
    if not rows:
        return h("p", "No rows.", class_="quiet")
    head = h("tr", [h("th", h("button", name, type="button"), scope="col") for name in columns])
    names = columns if stack else [None] * len(columns)
    body = [h("tr", [_render_cell(v, name) for v, name in zip(row, names, strict=True)]) for row in rows]
    note = f"{len(rows):,} of {of:,} rows; all are in the table {whole}" if of is not None and of > len(rows) else ""
    search = h("input", type="search", placeholder="filter", aria_label="filter the rows") if len(rows) > 5 else None
    tools = h("p", search, h("span", note, class_="quiet"), class_="tools") if search or note else None
    table = h("table", h("thead", head), h("tbody", body), class_="stack" if stack else None)
    return h("div", tools, h("div", table, class_="wide"), class_="sortable")


def _render_cell(value: Any, name: str | None) -> Markup:
    if isinstance(value, Number):
        return value.render(name)
    content = value if isinstance(value, Markup) else text("–" if value is None else value)
    size = len(content)  # with its markup
    return h("td", content, class_="long" if size > 60 else "short" if size < 40 else None, data_name=name)


def format_interval(low: float | None, high: float | None, form: str = ".4f") -> str:
    """An interval in brackets; empty where it is undefined."""
    return "" if low is None or high is None else f"[{low:{form}}, {high:{form}}]"


def format_segment(row: Mapping[str, Any]) -> str:
    """The segment of a row, as `column = value`; `all` for all queries."""
    return "all" if row["segment"] == EVERYTHING else f"{row['segment']} = {row['value']}"


def format_p(value: float) -> str:
    """A p-value with four digits and no zero before them, `< .0001` where they do not show it."""
    if value < 1e-4:
        return "< .0001"
    return "> .9999" if value > 0.9999 else f"{value:.4f}".lstrip("0")


def format_ci(config: Mapping[str, Any]) -> str:
    """The heading of intervals by the configured confidence, as `95 % CI`."""
    return f"{100 * float(config.get('statistics', {}).get('confidence', 0.95)):g} % CI"
