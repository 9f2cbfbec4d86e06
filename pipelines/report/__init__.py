"""The report: one HTML page of one run, from its published tables alone. No Spark, and bounded in size and memory."""

from __future__ import annotations

from pipelines.report import numbers, origins, verdicts
from pipelines.report.between import gather_two, render_two
from pipelines.report.facts import ROWS, Facts, gather
from pipelines.report.markup import cut, h, text
from pipelines.report.page import LARGEST, page
from pipelines.report.published import Published
from pipelines.runs import Manifest, report_name
from pipelines.storage import Storage

__all__ = ["render", "report_of", "report_of_two", "write_report"]


def write_report(storage: Storage, manifest: Manifest) -> str:
    """Write the report of a run beside it, and answer its place."""
    name = report_name(manifest.dt, manifest.run)
    storage.put(name, report_of(storage, manifest))
    return storage.path(name)


def report_of(storage: Storage, manifest: Manifest) -> str:
    """The page of one run."""
    return render(gather(Published(storage, manifest)))


def report_of_two(storage: Storage, before: Manifest, after: Manifest, system: str | None = None) -> str:
    """The page of two runs against each other."""
    return render_two(gather_two(Published(storage, before), Published(storage, after), system))


def render(facts: Facts) -> str:
    """The page that tells these facts, with as many rows as a page may have bytes for."""
    for rows in (ROWS, ROWS // 4, ROWS // 16):
        made = _render(facts.shorter(rows))
        if len(made.encode()) <= LARGEST:
            break
    return made


def _render(facts: Facts) -> str:
    manifest = facts.manifest
    systems = ", ".join(cut(system, 40) for system in manifest.systems[:12])
    heading = [
        h("h1", f"Assay, {manifest.dt}"),
        h("p", text(systems, 300), f" · run {manifest.run} · committed {manifest.committed_at[:16].replace('T', ' ')}"),
    ]
    sections = [
        verdicts.verdict(facts),
        verdicts.readings(facts),
        verdicts.comparison(facts),
        verdicts.sensitivity(facts),
        numbers.distribution(facts),
        numbers.cutoffs(facts),
        numbers.segments(facts),
        verdicts.movers(facts),
        origins.labels(facts),
        origins.quality(facts),
        origins.conditions(facts),
    ]
    return page(f"Assay {manifest.dt} {manifest.run}", heading, sections)
