"""One query's lists, rank by rank, with the arithmetic of every metric."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from pipelines.explain import Line
    from pipelines.one_query import OneQuery
    from pipelines.runs import Manifest
    from udfs.registry import Spec


def explain_lists(
    warehouse: str, run: str | None, query: str, systems: Sequence[str], metric: str | None, *, as_json: bool
) -> None:
    """Print the lists of a query and how each metric came about."""
    from pipelines.runs import find_run
    from pipelines.storage import Storage
    from schemas.errors import InputError, did_you_mean

    storage = Storage(warehouse)
    manifest = find_run(storage, run, having="query_metrics")
    for system in systems:
        if system not in manifest.systems:
            hint = did_you_mean(system, manifest.systems)
            raise InputError(f"run {manifest.run} has no system {system!r}", where="--system", hint=hint)
    spec = _spec(manifest, metric)
    from jobs.session import session
    from pipelines.config import Spark
    from pipelines.one_query import one_query

    with session(Spark(), "assay explain") as spark:
        found = one_query(spark, storage, manifest, query, systems)
    if not found.labels and not any(found.lists.values()):
        hint = "query_id is case sensitive"
        raise InputError(f"run {manifest.run} has no query {query!r}", where=warehouse, hint=hint)
    if as_json:
        click.echo(json.dumps(_told(found, manifest, spec), ensure_ascii=False))
    else:
        _show(found, manifest, query, spec)


def _spec(manifest: Manifest, metric: str | None) -> Spec:
    from udfs.registry import parse

    return parse(metric or next(iter(manifest.config["metrics"])))


def _told(found: OneQuery, manifest: Manifest, spec: Spec) -> dict[str, object]:
    from pipelines.explain import figures, ranking
    from udfs.conventions import Conventions
    from udfs.registry import parse_all

    conventions = Conventions.model_validate(manifest.conventions)
    specs = parse_all(manifest.config["metrics"])
    return {
        "run": manifest.run,
        "changed_inputs": found.changed,
        "labels": found.labels,
        "systems": {
            system: {
                "ranking": [asdict(line) for line in ranking(docs, found.labels, conventions, spec)],
                "metrics": [asdict(figure) for figure in figures(docs, found.labels, conventions, specs)],
            }
            for system, docs in found.lists.items()
        },
    }


def _show(found: OneQuery, manifest: Manifest, query: str, spec: Spec) -> None:
    import sys

    from rich.columns import Columns
    from rich.console import Console
    from rich.markup import escape

    from pipelines.explain import figures, ranking
    from udfs.conventions import Conventions
    from udfs.registry import parse_all

    console = Console(width=None if sys.stdout.isatty() else 120)
    conventions = Conventions.model_validate(manifest.conventions)
    console.print(escape(f"{query}, run {manifest.run} of {manifest.dt}, as {spec.name} sees it"), highlight=False)
    for name in found.changed:
        console.print(f"! {name} has changed since the run; its published numbers may differ", highlight=False)
    tables = [
        _table(system, ranking(docs, found.labels, conventions, spec), ideal=place == 0)
        for place, (system, docs) in enumerate(found.lists.items())
    ]
    console.print(Columns(tables, padding=(0, 3)))
    specs = parse_all(manifest.config["metrics"])
    for system, docs in found.lists.items():
        for figure in figures(docs, found.labels, conventions, specs):
            value = "undefined" if figure.value is None else f"{figure.value:.4f}"
            console.print(escape(f"{system}: {figure.metric} {value} = {figure.how}"), highlight=False, soft_wrap=True)


def _table(system: str, lines: Sequence[Line], *, ideal: bool) -> Table:
    """One list; the ideal, which is the same for all, stands beside the first."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(system), title_justify="left")
    table.add_column("rank", justify="right")
    table.add_column("document", max_width=30)
    for name in ("grade", "gain", "× discount", "= earned"):
        table.add_column(name, justify="right")
    if ideal:
        table.add_column("ideal", max_width=30)
        table.add_column("earned", justify="right")
    for line in lines:
        grade = "–" if line.doc_id is None else "?" if line.grade is None else f"{line.grade:g}"
        cells = [str(line.rank), escape(line.doc_id or "–"), grade, f"{line.gain:g}"]
        cells += [f"{line.discount:.4f}", f"{line.earned:.4f}"]
        if ideal:
            best = "–" if line.ideal_doc is None else f"{line.ideal_doc} ({line.ideal_grade:g})"
            cells += [escape(best), f"{line.ideal_earned:.4f}"]
        table.add_row(*cells)
    return table
