"""Render the report of one run: the sections in order, shortened until the page is small enough."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.report.data import ROWS, ReportData, gather_report_data
from pipelines.report.markup import Markup, cut, h, text
from pipelines.report.page import LARGEST, render_page
from pipelines.report.sections.basis import render_basis
from pipelines.report.sections.comparison import render_comparison, render_sensitivity
from pipelines.report.sections.configuration import render_configuration
from pipelines.report.sections.distribution import render_cutoffs, render_distribution
from pipelines.report.sections.labels import render_labels
from pipelines.report.sections.movers import render_movers
from pipelines.report.sections.quality import render_quality
from pipelines.report.sections.segments import render_segments
from pipelines.report.sections.verdict import render_readings, render_verdict
from pipelines.warehouse.runs import Manifest, report_path
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables

# Each answers None where the run has no data for it.
SECTIONS: tuple[Callable[[ReportData], Markup | None], ...] = (
    render_verdict,
    render_readings,
    render_comparison,
    render_basis,
    render_sensitivity,
    render_distribution,
    render_cutoffs,
    render_segments,
    render_movers,
    render_labels,
    render_quality,
    render_configuration,
)


def write_report(storage: Storage, manifest: Manifest) -> str:
    """Write the report of a run into the warehouse, and return its place."""
    name = report_path(manifest.dt, manifest.run)
    storage.put(name, render_report(storage, manifest))
    return storage.path(name)


def render_report(storage: Storage, manifest: Manifest) -> str:
    """The page of one run, from its published tables alone, without Spark."""
    return render_within_limit(gather_report_data(RunTables(storage, manifest)))


def render_within_limit(data: ReportData) -> str:
    """The page, with fewer rows in its long tables where it would exceed `LARGEST` bytes."""
    for rows in (ROWS, ROWS // 4, ROWS // 16):
        page = _render_sections(data.shorten(rows))
        if len(page.encode()) <= LARGEST:
            break
    return page


def _render_sections(data: ReportData) -> str:
    manifest = data.manifest
    systems = ", ".join(cut(system, 40) for system in manifest.systems[:12])
    heading = [
        h("h1", f"Assay, {manifest.dt}"),
        h("p", text(systems, 300), f" · run {manifest.run} · committed {manifest.committed_at[:16].replace('T', ' ')}"),
    ]
    return render_page(f"Assay {manifest.dt} {manifest.run}", heading, [render(data) for render in SECTIONS])
