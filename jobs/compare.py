"""`assay compare`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from jobs.options import debug, output, warehouse

if TYPE_CHECKING:
    from pipelines.compare_runs import RunComparison
    from pipelines.runs import Manifest


@click.command("compare")
@warehouse
@click.argument("before")
@click.argument("after")
@click.option("--system", help="The system in both runs; needed where a run has several.")
@click.option("--before-system", help="The system in the first run, where it differs.")
@output
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
@debug
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
    from pipelines.comparable import incomparable
    from pipelines.runs import find_run
    from pipelines.storage import Storage

    storage = Storage(warehouse)
    runs = (find_run(storage, before, having="query_metrics"), find_run(storage, after, having="query_metrics"))
    systems = (_system(runs[0], before_system or system), _system(runs[1], system))
    from jobs.session import session
    from pipelines.compare_runs import compare_runs
    from pipelines.config import Spark

    with session(Spark(master=master), "assay compare") as spark:
        found = compare_runs(spark, warehouse, runs, systems)
    if output == "json":
        told = {"runs": [m.run for m in runs], "systems": systems, "differ": incomparable(*runs)}
        click.echo(json.dumps(told | asdict(found), default=str))
    else:
        show(found, runs, systems)


def show(found: RunComparison, runs: tuple[Manifest, Manifest], systems: tuple[str, str]) -> None:
    """The paired differences, then how much of each difference is the mix of queries."""
    import sys

    from rich.console import Console

    from jobs.conclusions import show_comparisons
    from pipelines.comparable import incomparable

    console = Console(width=None if sys.stdout.isatty() else 120)
    for name, run, system in zip(("before", "after"), runs, systems, strict=True):
        console.print(f"{name}: {system} in run {run.run} of {run.dt}", highlight=False, markup=False)
    for reason in incomparable(*runs):
        console.print(f"! the runs differ: {reason}", highlight=False, soft_wrap=True, markup=False)
    overall = [row for row in found.comparisons if row["segment"] == "all"]
    show_comparisons(console, overall, runs[1].config["metrics"])
    for part in found.parts:
        s = part.split
        line = (
            f"{part.metric}, {part.form}: {s.delta:+.4f} = {s.within:+.4f} within + {s.mix:+.4f} mix of {part.segment}"
        )
        if s.reversal:
            line += f"; a reversal: every {part.segment} went the other way than the whole"
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def _system(run: Manifest, wanted: str | None) -> str:
    from schemas.errors import ConfigurationError, did_you_mean

    if wanted is None and len(run.systems) == 1:
        return run.systems[0]
    if wanted not in run.systems:
        what = f"run {run.run} has several systems" if wanted is None else f"run {run.run} has no system {wanted!r}"
        raise ConfigurationError(what, where="--system", hint=did_you_mean(wanted or "", run.systems))
    return wanted
