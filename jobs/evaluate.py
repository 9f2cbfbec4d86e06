"""Evaluate ranking systems: `assay evaluate`, `python jobs/evaluate.py` or `spark-submit jobs/evaluate.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":  # run as a file, Python looks for imports beside it rather than in the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import datetime as dt
import json

import click

from jobs.conclusions import show_conclusions
from jobs.label import account
from jobs.options import Date, configured, debug, log, output
from schemas.errors import GateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipelines.evaluate import Outcome
    from pipelines.runs import Manifest


@click.command("evaluate")
@configured
@click.option("--date", required=True, type=Date(), help="The date to evaluate, e.g. 2026-11-01.")
@click.option("--force", is_flag=True, help="Do the work again even where it is already done.")
@click.option("--no-gate", is_flag=True, help="Show the gate's verdicts, but finish with 0 whatever they are.")
@output
@log
@debug
def command(
    config: str, overrides: tuple[str, ...], date: dt.date, force: bool, no_gate: bool, output: str, log: str
) -> None:
    """Score systems against labels and publish the result.

    \b
    assay evaluate --config conf/demo.yaml --date 2026-11-01
    spark-submit jobs/evaluate.py --config conf/demo.yaml --date 2026-11-01
    """
    from pipelines.configure import load

    loaded = load(config, overrides)  # before anything that starts a JVM
    from jobs.logs import watched
    from jobs.session import session
    from jobs.share import prepare, share
    from pipelines.evaluate import evaluate
    from pipelines.quality.results import lines
    from pipelines.storage import Storage

    with watched(log) as shown, session(loaded.config.spark, f"assay evaluate {date}") as spark:
        shown.spark = spark
        prepare(loaded.config)
        outcome = evaluate(spark, loaded.config, date, force=force)
        names = ("segment_metrics", "comparisons", "sensitivity")
        headline, compared, sensitivity = (
            about_all(spark, loaded.config.warehouse, outcome.manifest, n) for n in names
        )
    shared = share(loaded.config, outcome.manifest)
    if output == "json":
        manifest = outcome.manifest
        said = {"gate": manifest.gate, "readings": manifest.readings, "checks": manifest.checks}
        said |= {"sensitivity": sensitivity, "labels": manifest.labels}
        facts = {"run": manifest.run, "found_done": outcome.found_done, "metrics": headline, "comparisons": compared}
        click.echo(json.dumps(facts | said | {"shared": shared.places}, default=str))
    else:
        show(outcome, headline, loaded.config.warehouse, loaded.config.metrics)
        show_conclusions(outcome.manifest, compared, sensitivity, loaded.config.metrics)
        for line in lines(outcome.manifest.checks):
            click.echo(line)
        if "docs" in outcome.manifest.checks:
            click.echo(
                f"Data Docs: {Storage(loaded.config.warehouse).path(outcome.manifest.checks['docs'])}/index.html"
            )
        for name, place in shared.places.items():
            click.echo(f"{name.capitalize().replace('Mlflow', 'MLflow')}: {place}")
    if not no_gate:
        refuse(outcome.manifest)
    shared.settle()


def about_all(spark: SparkSession, warehouse: str, manifest: Manifest, name: str) -> list[dict[str, Any]]:
    """What one of a run's tables says of all queries together; nothing where the run has no such table."""
    from pipelines.runs import read_table

    if name not in manifest.tables:
        return []
    table = read_table(spark, warehouse, name, date=manifest.dt, run=manifest.run)
    whole = table.where("segment = 'all'") if "segment" in table.columns else table
    return [row.asDict() for row in whole.collect()]


def refuse(manifest: Manifest) -> None:
    """Raise where the gate does not pass; the run is published all the same."""
    stopped = [verdict for verdict in manifest.gate if verdict["verdict"] != "pass"]
    if stopped:
        first = stopped[0]
        raise GateError(
            f"{len(stopped)} of {len(manifest.gate)} conditions of the gate are not met, first: {first['condition']} "
            f"for {first['candidate']}: {first['verdict']}, {first['reason']}",
            where=f"run {manifest.run}",
            hint="the results are published; --no-gate finishes with 0",
        )


def show(outcome: Outcome, headline: list[dict[str, object]], warehouse: str, metrics: tuple[str, ...]) -> None:
    """Print the mean of every metric per system, and where everything is."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from udfs.registry import parse

    manifest = outcome.manifest
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title=f"Mean over queries, {manifest.dt}", title_justify="left")
    table.add_column("system")
    for name in metrics:
        table.add_column(name, justify="right")
    table.add_column("queries", justify="right")
    table.add_column("skipped", justify="right")
    values = {(row["system"], row["metric"]): row for row in headline}
    for system in manifest.systems:
        rows = [values[system, parse(name).key] for name in metrics]
        cells = ["–" if row["macro"] is None else f"{row['macro']:.4f}" for row in rows]
        table.add_row(escape(system), *cells, f"{rows[0]['queries']:,}", f"{rows[0]['skipped']:,}")
    console.print(table)
    for line in _notes(manifest, warehouse, found_done=outcome.found_done):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def _notes(manifest: Manifest, warehouse: str, *, found_done: bool) -> list[str]:
    lines = account(manifest.labels)
    for name, counts in manifest.inputs.items():
        rejected = sum(counts["rejected"].values())
        if rejected:
            reasons = ", ".join(f"{reason} ({rows:,})" for reason, rows in counts["rejected"].items())
            lines.append(f"! {rejected:,} of {counts['read']:,} rows of {name} are in quarantine: {reasons}")
        if counts["missing_days"]:
            lines.append(f"! {name} has no data for {', '.join(counts['missing_days'])}")
    written = ", ".join(f"{name} ({record.rows:,} rows)" for name, record in manifest.tables.items())
    lines.append(f"Run {manifest.run}" + (" was already done; --force makes a new one" if found_done else ""))
    lines.append(f"Tables in {warehouse}: {written}")
    return lines


if __name__ == "__main__":
    from jobs.cli import invoke

    sys.exit(invoke(command))
