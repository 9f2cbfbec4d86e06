"""`assay compare`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from jobs.support.completion import RUN, SYSTEM
from jobs.support.options import debug_option, output_option, warehouse_option
from schemas.printable import format_count

if TYPE_CHECKING:
    from pipelines.comparison.two_runs import RunComparison
    from pipelines.warehouse.runs import Manifest

MEANS = {"macro": "mean over queries", "weighted": "mean by traffic", "micro": "ratio over all queries"}


@click.command("compare")
@warehouse_option
@click.argument("before", type=RUN)
@click.argument("after", type=RUN)
@click.option("--system", type=SYSTEM, help="The system in both runs; needed where a run has several.")
@click.option("--before-system", type=SYSTEM, help="The system in the first run, where it differs.")
@output_option
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
@debug_option
def command(
    warehouse: str,
    before: str,
    after: str,
    system: str | None,
    before_system: str | None,
    output: str,
    master: str,
) -> None:
    """Compare two published runs by query; a run is named by its id or its date.

    \b
    assay compare 2026-11-01 2026-11-02 --system neural --warehouse build/demo/warehouse
    """
    from jobs.support.session import open_session
    from pipelines.comparison.comparable import find_differences
    from pipelines.comparison.two_runs import compare_runs
    from pipelines.config.spark import SparkSettings
    from pipelines.warehouse.runs import find_run
    from pipelines.warehouse.storage import Storage

    storage = Storage(warehouse)
    runs = (find_run(storage, before, having="query_metrics"), find_run(storage, after, having="query_metrics"))
    systems = (choose_system(runs[0], before_system or system), choose_system(runs[1], system))
    with open_session(SparkSettings(master=master), "assay compare") as spark:
        result = compare_runs(spark, warehouse, runs, systems)
    require_paired_queries(result, runs)
    if output == "json":
        about = {"runs": [run.run for run in runs], "systems": systems, "differ": find_differences(*runs)}
        parts = [asdict(part) for part in result.parts]
        click.echo(json.dumps(about | {"comparisons": result.comparisons, "parts": parts}, default=str))
    else:
        show_two_runs(result, runs, systems)


def require_paired_queries(result: RunComparison, runs: tuple[Manifest, Manifest]) -> None:
    """Raise if no query counts in both runs: a table without numbers would not say why."""
    from schemas.errors import InputError

    overall = [row for row in result.comparisons if row["segment"] == "all"]
    if any(row["queries"] for row in overall):
        return
    unjudged = max((row["unjudged"] or 0 for row in overall), default=0)
    have = "has" if unjudged == 1 else "have"
    why = f"{format_count(unjudged, 'query')} {have} too little judged" if unjudged else "they have no query in common"
    names = f"{runs[0].run} and {runs[1].run}"
    hint = "compare runs on the same queries and similar labels"
    raise InputError(f"nothing can be compared: no query counts in both runs, {why}", where=names, hint=hint)


def show_two_runs(result: RunComparison, runs: tuple[Manifest, Manifest], systems: tuple[str, str]) -> None:
    """Print the paired differences, then how much of each difference comes from the mix of queries."""
    from jobs.support.conclusions import show_comparisons
    from jobs.support.terminal import open_console, print_line
    from pipelines.comparison.answers import read_confidence
    from pipelines.comparison.comparable import find_differences
    from pipelines.comparison.headline import read_shown_metrics
    from udfs.registry import parse_metrics

    console = open_console(wide=True)
    for name, run, system in zip(("before", "after"), runs, systems, strict=True):
        console.print(f"{name}: {system} in run {run.run} of {run.dt}", highlight=False, markup=False)
    for reason in find_differences(*runs):
        print_line(console, f"! the runs differ: {reason}")
    overall = [row for row in result.comparisons if row["segment"] == "all"]
    names = {spec.key: spec.name for spec in parse_metrics(read_shown_metrics(runs[1]))}
    show_comparisons(console, overall, read_shown_metrics(runs[1]), read_confidence(runs[1]))
    for part in (part for part in result.parts if part.metric in names):
        s = part.split
        line = (
            f"{names[part.metric]}, {MEANS[part.form]}: {s.delta:+.4f} = {s.within:+.4f} within each {part.segment} "
            f"{s.mix:+.4f} from another mix of {part.segment}"
        )
        if s.reversal:
            line += f"; a reversal: every {part.segment} moved against the whole"
        print_line(console, line)


def choose_system(run: Manifest, name: str | None, key: str = "--system") -> str:
    """The named system of a run, or the only one."""
    from schemas.errors import ConfigurationError, did_you_mean

    if name is None and len(run.systems) == 1:
        return run.systems[0]
    if name not in run.systems:
        problem = f"run {run.run} has several systems" if name is None else f"run {run.run} has no system {name!r}"
        raise ConfigurationError(problem, where=key, hint=did_you_mean(name or "", run.systems))
    return name
