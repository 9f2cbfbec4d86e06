"""Render the report of one run: the sections in order, shortened until the page is small enough."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.report.data import ROWS, ReportData, gather_report_data
from pipelines.report.markup import Markup, cut, h, text
from pipelines.report.page import LARGEST, render_page
from pipelines.report.sections.answer import render_answer
from pipelines.report.sections.basis import render_basis
from pipelines.report.sections.comparison import render_comparison, render_sensitivity
from pipelines.report.sections.configuration import render_configuration
from pipelines.report.sections.distribution import render_cutoffs, render_distribution
from pipelines.report.sections.labels import render_labels
from pipelines.report.sections.movers import render_movers
from pipelines.report.sections.quality import render_quality
from pipelines.report.sections.segments import render_segments
from pipelines.report.sections.systems import render_systems
from pipelines.report.sections.verdict import render_conditions, render_readings
from pipelines.report.settings import ReportSettings
from pipelines.warehouse.runs import Manifest, report_path
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables
from schemas.printable import format_count

LINKS = 12

# The answer on one page, then the detail. Each answers None where the run has no data for it.
SECTIONS: tuple[Callable[[ReportData], Markup | None], ...] = (
    render_answer,
    render_conditions,
    render_readings,
    render_systems,
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


def write_report(storage: Storage, manifest: Manifest, settings: ReportSettings | None = None) -> str:
    """Write the report of a run into the warehouse, and return its place."""
    name = report_path(manifest.dt, manifest.run)
    storage.put(name, render_report(storage, manifest, settings))
    return storage.path(name)


def render_report(storage: Storage, manifest: Manifest, settings: ReportSettings | None = None) -> str:
    """The page of one run, from its published tables alone, without Spark."""
    return render_within_limit(gather_report_data(RunTables(storage, manifest), settings))


def render_within_limit(data: ReportData) -> str:
    """The page, with fewer rows in its long tables where it would exceed `LARGEST` bytes."""
    for rows in (ROWS, ROWS // 4, ROWS // 16):
        page = _render_sections(data.shorten(rows))
        if len(page.encode()) <= LARGEST:
            break
    return page


def _render_sections(data: ReportData) -> str:
    manifest, title = data.manifest, cut(data.settings.title or "Assay", 100)
    facts = [
        data.settings.owner,
        format_count(len(manifest.systems), "system"),
        f"run {manifest.run}",
        f"committed {manifest.committed_at[:16].replace('T', ' ')} UTC",
    ]
    heading = [
        h("h1", f"{title}, {manifest.dt}"),
        h("p", text(" · ".join(cut(fact, 100) for fact in facts if fact), 400), _render_links(data)),
    ]
    return render_page(f"{title} {manifest.dt} {manifest.run}", heading, [render(data) for render in SECTIONS])


def _render_links(data: ReportData) -> list[Markup]:
    """The configured links; a place in an address is replaced only by what Assay itself named."""
    places = {"{date}": data.manifest.dt, "{run}": data.manifest.run, "{docs}": data.manifest.checks.get("docs", "")}
    links = []
    for name, address in list(data.settings.links.items())[:LINKS]:
        for place, value in places.items():
            address = address.replace(place, value)
        links.append(h("a", text(name, 60), href=address, rel="noreferrer", class_="link"))
    return links
