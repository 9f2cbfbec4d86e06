"""The mean of every metric per system: the baseline first, then candidates by their effect."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.comparison.headline import counts_other_queries, list_mean_forms, name_mean
from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, h
from pipelines.report.tables import Number, format_ci, format_interval, render_table
from pipelines.warehouse.tables import Row


def render_systems(data: ReportData) -> Markup | None:
    """The means with their intervals; those over other queries than the baseline's are marked and explained."""
    if not data.overall:
        return None
    by_key = {(row["system"], row["metric"]): row for row in data.overall}
    # Sums of gains are also shown over searches: there, frequent queries count as often as they are searched.
    cells = [(spec, form) for spec in data.metrics for form in list_mean_forms(spec)]
    rows = []
    marked = False
    for system in data.systems:
        means = [by_key.get((system, spec.key)) for spec, _ in cells]
        base = [by_key.get((data.baseline or "", spec.key)) for spec, _ in cells]
        others = [counts_other_queries(row, reference) for row, reference in zip(means, base, strict=True)]
        marked |= any(others)
        counts = _count_queries(means)
        shown = [
            _build_mean(row, form, counts[0].value, other)
            for row, (_, form), other in zip(means, cells, others, strict=True)
        ]
        name = f"{system} (baseline)" if system == data.baseline else system
        rows.append([name, *shown, *counts])
    columns = ["system", *[name_mean(spec, form) for spec, form in cells], "queries", "skipped"]
    note = f"Means over queries with their {format_ci(data.manifest.config)}."
    if marked:
        note += (
            f" † is over different queries from {data.baseline}’s, so the two means are not comparable; the "
            "differences below are over the same queries."
        )
    table = render_table(columns, rows, of=len(data.manifest.systems), whole="segment_metrics")
    return h("section", h("h2", "All systems"), h("p", note, class_="quiet"), table, id="systems")


def _build_mean(row: Row | None, form: str, queries: float | None, other: bool) -> Number:
    if row is None:
        return Number(None)
    count = f" n={row['queries']:,}" if row["queries"] != queries else ""
    beside = format_interval(row[f"{form}_low"], row[f"{form}_high"], ".3f") + ("†" if other else "") + count
    return Number(row[form], beside=beside)


def _count_queries(means: Sequence[Row | None]) -> list[Number]:
    row = next((row for row in means if row is not None), None)
    return [Number(None if row is None else row[name], ",") for name in ("queries", "skipped")]
