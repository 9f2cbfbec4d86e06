"""Every average by segment, to be sorted and filtered."""

from __future__ import annotations

from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, h
from pipelines.report.tables import Number, format_ci, format_interval, format_segment, render_table


def render_segments(data: ReportData) -> Markup | None:
    """The rows of `segment_metrics`, largest segments first."""
    if not data.segments:
        return None
    rows = [
        [
            row["system"],
            format_segment(row),
            data.name(row["metric"]),
            Number(row["macro"], beside=format_interval(row["macro_low"], row["macro_high"], ".3f")),
            Number(row["weighted"]),
            Number(row["stddev"]),
            Number(row["queries"], ","),
            Number(row["skipped"], ","),
        ]
        for row in data.segments
    ]
    mean = f"mean [{format_ci(data.manifest.config)}]"
    columns = ["system", "segment", "metric", mean, "mean by traffic", "std. dev.", "queries", "skipped"]
    table = render_table(columns, rows, of=data.sizes.get("segment_metrics"), whole="segment_metrics")
    return h("section", h("h2", "Segments"), table, id="segments")
