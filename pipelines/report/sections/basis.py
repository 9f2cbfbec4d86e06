"""What comparisons on drawn labels rest on: shares of the variance and of the lists, and the effects of the prior."""

from __future__ import annotations

from pipelines.report.charts import Point, draw_lines
from pipelines.report.comparisons import build_delta_cell
from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, cut, h
from pipelines.report.sections.comparison import format_pair
from pipelines.report.tables import Number, format_ci, render_table
from pipelines.warehouse.tables import Row
from udfs.statistics.plan import EVERYTHING

CHARTS = 12
BASIS_NOTE = (
    "Every document has a posterior: what the log showed of it, and a prior learned from the ranks in all systems. "
    "“From labels” is the share of the variance: where it is large, better labels narrow the interval, and more "
    "queries do not. “Never shown” is the share of the weight of the candidate’s top results on documents that nobody "
    "was shown, and “no traffic” the share of the queries where nobody was shown any document of either list: there "
    "the prior decides. “Curve” is the change of Δ if the exponent of the examination curve is one standard deviation "
    "larger. A system that may have learned from clicks has two answers, with and without what its ranks say about "
    "documents that nobody was shown, and the interval is their hull."
)
PRIOR_NOTE = (
    "What the prior learned from the log: how much more relevant a document is at each rank of a system, given its "
    "ranks in the others, as the logarithm of a factor with its 95 % interval (+0.7 doubles, −0.7 halves). A flat line "
    "means that the ranks of this system add nothing. Effects of pairs of systems are in the table label_prior."
)


def render_basis(data: ReportData) -> Markup | None:
    """The shares by pair and headline metric, and a chart of the prior's effects for each system and opinion."""
    rows = [row for row in data.comparisons if row["segment"] == EVERYTHING and row["metric"] in data.headline]
    drawn = [row for row in rows if row.get("label_share") is not None]
    charts = _draw_prior(data)
    if not drawn and not charts:
        return None
    columns = ["from labels", "never shown", "no traffic", "curve", "answers"]
    table = [
        [
            format_pair(row["baseline"], row["candidate"]),
            data.name(row["metric"]),
            build_delta_cell(row),
            *[Number(row[name], ".0%") for name in ("label_share", "unseen_weight", "untrafficked")],
            Number(row["curve_shift"], "+.4f"),
            f"{row['delta']:+.4f} or {row['other']:+.4f}" if row["hull"] else "one",
        ]
        for row in drawn
    ]
    headings = ["pair", "metric", f"Δ [{format_ci(data.manifest.config)}]", *columns]
    return h(
        "section",
        h("h2", "What it rests on"),
        h("p", BASIS_NOTE, class_="quiet"),
        render_table(headings, table) if table else None,
        [h("h3", "The prior"), h("p", PRIOR_NOTE, class_="quiet"), h("div", charts, class_="plots")]
        if charts
        else None,
        id="basis",
    )


def _draw_prior(data: ReportData) -> list[Markup]:
    """One chart per system or opinion, on a common scale."""
    factors: dict[str, list[Row]] = {}
    for row in data.prior:
        factors.setdefault(row["factor"], []).append(row)
    shown = dict(list(factors.items())[:CHARTS])
    ends = [row[end] for rows in shown.values() for row in rows for end in ("low", "high")]
    span = (min(ends), max(ends)) if ends else None
    return [_draw_factor(name, rows, span) for name, rows in shown.items()]


def _draw_factor(name: str, rows: list[Row], span: tuple[float, float] | None) -> Markup:
    points = [
        Point(
            x=float(place),
            y=row["effect"],
            low=row["low"],
            high=row["high"],
            hover=f"{row['level']}: {row['effect']:.2f} [{row['low']:.2f}, {row['high']:.2f}], "
            f"{row['clicks']:,.0f} clicks, {row['expected']:,.0f} expected",
        )
        for place, row in enumerate(rows)
    ]
    step = max(1, -(-len(rows) // 8))
    ticks = [(float(place), cut(row["level"], 9)) for place, row in enumerate(rows)][::step]
    ticks.append((len(rows) - 0.6, ""))  # room for the last word
    return draw_lines([(name, points)], f"{cut(name, 40)}: log effect on relevance", ticks=ticks, span=span)
