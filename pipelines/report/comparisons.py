"""Rows of `comparisons`, of one run or between two, as forest plots and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.report.charts import Interval, draw_forest, measure_span
from pipelines.report.markup import Markup
from pipelines.report.tables import Number, format_interval, format_p, format_segment
from udfs.statistics.plan import Row

LINES = 40  # of one forest plot


def draw_comparisons(rows: Sequence[Row], title: str, span: tuple[float, float] | None = None) -> Markup | None:
    """A forest plot with one line per row; None where no row has a difference."""
    lines = _build_lines(rows)
    return draw_forest(lines, title, span=span) if lines else None


def measure_comparisons(rows: Sequence[Row]) -> tuple[float, float] | None:
    """The range of some rows, for plots that share a scale; None where no row has a difference."""
    lines = _build_lines(rows)
    return measure_span(lines) if lines else None


def list_comparison_columns(ci: str) -> list[str]:
    """The headings of `list_comparison_cells`; `ci` is that of an interval, as `95 % CI`."""
    return [f"Δ [{ci}]", "change", "Δ by traffic", "p", "p (adjusted)", "W / T / L", "queries", "min. detectable Δ"]


def list_comparison_cells(row: Row) -> list[Number]:
    """The numbers of one comparison; W / T / L sorts by wins − losses."""
    return [
        build_delta_cell(row, choose_tone(row)),
        Number(row["relative"], "+.1%"),
        Number(row["weighted_delta"], "+.4f"),
        *[Number(p, label="" if p is None else format_p(p)) for p in (row["p_value"], row["p_adjusted"])],
        Number(row["wins"] - row["losses"], label=f"{row['wins']:,} / {row['ties']:,} / {row['losses']:,}"),
        Number(row["queries"], ","),
        Number(row["detectable_delta"], ".4f"),
    ]


def build_delta_cell(row: Row, tone: str = "") -> Number:
    """The difference with its interval beside it."""
    return Number(row["delta"], "+.4f", tone, format_interval(row["delta_low"], row["delta_high"], "+.4f"))


def choose_tone(row: Row) -> str:
    """The colour of a difference that is significant after correction: `better` or `worse`; none otherwise."""
    if not row["significant"]:
        return ""
    return "better" if row["delta"] > 0 else "worse"


def _build_lines(rows: Sequence[Row]) -> list[Interval]:
    return [_build_line(row) for row in rows if row["delta"] is not None][:LINES]


def _build_line(row: Row) -> Interval:
    delta, low, high = row["delta"], row["delta_low"], row["delta_high"]
    return Interval(
        label=format_segment(row),
        value=delta,
        low=low,
        high=high,
        beside=f"{delta:+.3f} {format_interval(low, high, '+.3f')}",
        hover=f"{delta:+.4f} {format_interval(low, high, '+.4f')}, {row['queries']:,} queries",
        tone=choose_tone(row),
    )
