"""One query's lists, rank by rank, with the arithmetic of every metric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    lists = {system: ranking(docs, found.labels, conventions, spec) for system, docs in found.lists.items()}
    console.print(_table(lists))
    specs = parse_all(manifest.config["metrics"])
    for system, docs in found.lists.items():
        for figure in figures(docs, found.labels, conventions, specs):
            value = "undefined" if figure.value is None else f"{figure.value:.4f}"
            console.print(escape(f"{system}: {figure.metric} {value} = {figure.how}"), highlight=False, soft_wrap=True)


def _table(lists: Mapping[str, Sequence[Line]]) -> Table:
    """The lists side by side, one row per rank, and the ideal, which is the same for all, after them."""
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    table.add_column("rank", justify="right")
    table.add_column("× discount", justify="right")
    for system in lists:
        table.add_column(escape(system), max_width=24)
        for name in ("grade", "gain", "earned"):
            table.add_column(name, justify="right")
    table.add_column("ideal", max_width=24)
    table.add_column("earned", justify="right")
    longest = max(lists.values(), key=len)
    for place, of_all in enumerate(longest):
        cells = [str(of_all.rank), f"{of_all.discount:.4f}"]
        for lines in lists.values():
            cells += _cells(lines[place]) if place < len(lines) else ["–", "–", "–", "–"]
        best = "–" if of_all.ideal_doc is None else f"{of_all.ideal_doc} ({of_all.ideal_grade:g})"
        table.add_row(*map(escape, [*cells, best, f"{of_all.ideal_earned:.4f}"]))
    return table


def _cells(line: Line) -> list[str]:
    grade = "–" if line.doc_id is None else "?" if line.grade is None else f"{line.grade:g}"
    return [line.doc_id or "–", grade, f"{line.gain:g}", f"{line.earned:.4f}"]
