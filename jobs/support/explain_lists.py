"""Print the lists of one query, rank by rank, and the arithmetic of every metric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

    from pipelines.scoring.explain import ExplainedRanking, MetricFigure, RankedDocument, RankLine
    from pipelines.scoring.one_query import QueryDetails
    from pipelines.warehouse.runs import Manifest
    from udfs.registry import MetricSpec


LONGEST_TITLE = 40  # characters


def explain_lists(
    warehouse: str,
    run: str | None,
    query: str,
    systems: Sequence[str],
    metric: str | None,
    *,
    depth: int,
    as_json: bool,
) -> None:
    """Print the lists of a query, and the arithmetic of every metric."""
    from pipelines.warehouse.runs import find_run
    from pipelines.warehouse.storage import Storage
    from schemas.errors import InputError, did_you_mean

    storage = Storage(warehouse)
    manifest = find_run(storage, run, having="query_metrics")
    for system in systems:
        if system not in manifest.systems:
            hint = did_you_mean(system, manifest.systems)
            raise InputError(f"run {manifest.run} has no system {system!r}", where="--system", hint=hint)
    from jobs.support.session import open_session
    from pipelines.config.spark import SparkSettings
    from pipelines.scoring.one_query import read_query
    from udfs.registry import parse_metric

    spec = parse_metric(metric or next(iter(manifest.config["metrics"])))
    with open_session(SparkSettings(), "assay explain") as spark:
        details = read_query(spark, storage, manifest, query, systems)
    if not details.labels and not any(details.lists.values()):
        hint = "query_id is case sensitive"
        raise InputError(f"run {manifest.run} has no query {query!r}", where=warehouse, hint=hint)
    explanations = _explain_systems(details, manifest, spec, depth)
    if as_json:
        click.echo(json.dumps(_to_json(details, manifest, explanations), ensure_ascii=False))
    else:
        name = f"{details.text} ({query})" if details.text and details.text != query else query
        title = f"{name}, run {manifest.run} of {manifest.dt}, as {spec.name} sees it"
        _show(title, details, explanations)


def _explain_systems(
    details: QueryDetails, manifest: Manifest, spec: MetricSpec, depth: int
) -> dict[str, tuple[ExplainedRanking, list[MetricFigure]]]:
    """Per system, its list as `spec` sees it, and every metric of the run."""
    from pipelines.scoring.explain import (
        explain_drawn_metrics,
        explain_drawn_ranking,
        explain_metrics,
        explain_ranking,
    )
    from udfs.conventions import Conventions
    from udfs.registry import parse_metrics

    conventions = Conventions.model_validate(manifest.conventions)
    specs = parse_metrics(manifest.config["metrics"])
    if details.drawn:
        return {
            system: (
                explain_drawn_ranking(docs, details.drawn, conventions, spec, depth=depth),
                explain_drawn_metrics(docs, details.drawn, conventions, specs),
            )
            for system, docs in details.lists.items()
        }
    return {
        system: (
            explain_ranking(docs, details.labels, conventions, spec, depth=depth),
            explain_metrics(docs, details.labels, conventions, specs),
        )
        for system, docs in details.lists.items()
    }


def _to_json(details: QueryDetails, manifest: Manifest, explanations: Mapping[str, Any]) -> dict[str, object]:
    return {
        "run": manifest.run,
        "query": details.text,
        "titles": details.titles,
        "changed_inputs": details.changed,
        "labels": details.labels,
        "systems": {
            system: {
                "ranking": [asdict(line) for line in ranking.lines],
                "more_ranks": ranking.more,
                "metrics": [asdict(figure) for figure in figures],
            }
            for system, (ranking, figures) in explanations.items()
        },
    }


def _show(
    title: str, details: QueryDetails, explanations: Mapping[str, tuple[ExplainedRanking, Sequence[MetricFigure]]]
) -> None:

    from rich.markup import escape

    from jobs.support.terminal import open_console

    console = open_console(wide=True)
    console.print(escape(title), highlight=False)
    for name in details.changed:
        console.print(f"! {name} has changed since the run; its published numbers may differ", highlight=False)
    lists = {system: ranking.lines for system, (ranking, _) in explanations.items()}
    console.print(_build_table(lists, details.titles))
    more = max(ranking.more for ranking, _ in explanations.values())
    if more:
        console.print(f"… and {more:,} more ranks; --depth shows them", highlight=False)
    for system, (_, figures) in explanations.items():
        for figure in figures:
            value = "undefined" if figure.value is None else f"{figure.value:.4f}"
            console.print(escape(f"{system}: {figure.metric} {value} = {figure.how}"), highlight=False, soft_wrap=True)


def _build_table(lists: Mapping[str, Sequence[RankLine]], titles: Mapping[str, str]) -> Table:
    """The lists side by side, one row per rank, then the ideal ranking, which is the same for all."""
    from rich.markup import escape
    from rich.table import Table

    lines = [line for ranking in lists.values() for line in ranking]
    summed = any(side.discount is not None for line in lines for side in (line.document, line.ideal) if side)
    columns = ("gain", "× discount", "adds") if summed else ("adds",)
    table = Table()
    table.add_column("rank", justify="right")
    for system in lists:
        table.add_column(escape(system), max_width=24)
        for name in ("grade", *columns):
            table.add_column(name, justify="right")
    table.add_column("ideal", max_width=24)
    table.add_column("adds", justify="right")
    longest = max(lists.values(), key=len)
    for place, line in enumerate(longest):
        cells = [str(line.rank)]
        for ranking in lists.values():
            document = ranking[place].document if place < len(ranking) else None
            cells += _format_document(document, titles, with_terms=summed)
        perfect = line.ideal
        ideal = "–" if perfect is None else f"{_name_document(perfect.doc_id, titles)} ({perfect.grade:.3g})"
        cells += [ideal, "–" if perfect is None else _format(perfect.adds)]
        table.add_row(*map(escape, cells))
    return table


def _name_document(doc: str, titles: Mapping[str, str]) -> str:
    return f"{doc} {titles[doc][:LONGEST_TITLE]}" if titles.get(doc) else doc


def _format_document(document: RankedDocument | None, titles: Mapping[str, str], *, with_terms: bool) -> list[str]:
    if document is None:
        return ["–"] * (5 if with_terms else 3)
    grade = "?" if document.grade is None else f"{document.grade:g}"
    if document.spread is not None:
        grade = f"{document.grade:.2f} ± {document.spread:.2f}" + (" prior" if document.source == "prior" else "")
    gain = "–" if document.gain is None else f"{document.gain:.4g}"
    terms = [gain, _format(document.discount)] if with_terms else []
    return [_name_document(document.doc_id, titles), grade, *terms, _format(document.adds)]


def _format(number: float | None) -> str:
    return "–" if number is None else f"{number:.4f}"
