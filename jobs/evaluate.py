"""Evaluate ranking systems: `assay evaluate`, `python jobs/evaluate.py` or `spark-submit jobs/evaluate.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":  # run as a file, Python imports from its folder instead of the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from jobs.support.labelling import describe_labelling
from jobs.support.options import Date, config_options, debug_option, log_option, verdict_output_option
from schemas.errors import GateError, InputError
from schemas.printable import format_count

if TYPE_CHECKING:
    from pipelines.comparison.answers import CandidateAnswer
    from pipelines.config.model import Config
    from pipelines.plan import LocalInputs, Outcome
    from pipelines.warehouse.runs import Manifest


@click.command("evaluate")
@config_options
@click.option("--date", required=True, type=Date(), help="The date to evaluate, e.g. 2026-11-01.")
@click.option("--force", is_flag=True, help="Repeat the work even if it is already committed.")
@click.option("--no-gate", is_flag=True, help="Show the gate's verdicts, but exit with 0 whatever they are.")
@click.option("--all", "every_reading", is_flag=True, help="Print every reading instead of the three that matter most.")
@verdict_output_option
@log_option
@debug_option
def command(
    config: str,
    overrides: tuple[str, ...],
    date: dt.date,
    force: bool,
    no_gate: bool,
    every_reading: bool,
    output: str,
    log: str,
) -> None:
    """Score systems against labels and publish the result.

    \b
    assay evaluate --config conf/demo.yaml --date 2026-11-01
    spark-submit jobs/evaluate.py --config conf/demo.yaml --date 2026-11-01
    """
    from pipelines.config.load import load_config

    loaded = load_config(config, overrides)  # before anything that starts a JVM
    from pipelines.comparison.answers import answer_comparisons
    from pipelines.plan import define_evaluation, look_ahead
    from pipelines.sharing.share import share_run

    local = look_ahead(define_evaluation(loaded.config), date)
    outcome = None if force or local is None else local.committed
    if outcome is None:
        with loaded.locate_errors():
            outcome = _evaluate(loaded.config, date, local, force=force, log=log)
    names = ("segment_metrics", "comparisons", "sensitivity")
    headline, compared, sensitivity = (
        read_overall_rows(loaded.config.warehouse, outcome.manifest, name) for name in names
    )
    shared = share_run(loaded.config, outcome.manifest, reused=outcome.reused)
    answers = answer_comparisons(outcome.manifest, compared)
    if output == "json":
        manifest = outcome.manifest
        facts = {
            "run": manifest.run,
            "found_done": outcome.reused,
            "metrics": headline,
            "verdicts": [asdict(answer) for answer in answers],
            "comparisons": compared,
            "gate": manifest.gate,
            "readings": manifest.readings,
            "checks": manifest.checks,
            "sensitivity": sensitivity,
            "labels": manifest.labels,
            "shared": shared.places,
        }
        click.echo(json.dumps(facts, default=str))
    elif output in ("markdown", "junit"):
        click.echo(_render_verdicts(output, outcome.manifest, answers, compared))
    else:
        show_run(outcome, loaded.config.warehouse, (headline, compared, sensitivity), every_reading=every_reading)
        for name, place in shared.places.items():
            click.echo(f"{name.capitalize().replace('Mlflow', 'MLflow')}: {place}")
    if not no_gate:
        require_gate(outcome.manifest)
    require_comparison(outcome.manifest, answers)
    shared.raise_error()


def _evaluate(config: Config, date: dt.date, local: LocalInputs | None, *, force: bool, log: str) -> Outcome:
    """Start Spark and evaluate; the pipeline is imported while Java starts."""
    from jobs.support.logs import show_progress
    from jobs.support.session import list_imports, open_session
    from jobs.support.workload import log_workload
    from pipelines.sharing.share import start_warm_up

    size = None if local is None else local.bytes
    with (
        show_progress(log) as shown,
        open_session(
            config.spark, f"assay evaluate {date}", input_bytes=size, imports=list_imports("pipelines.evaluate", config)
        ) as spark,
    ):
        from pipelines.evaluate import evaluate

        shown.attach(spark)
        start_warm_up(config)
        outcome = evaluate(spark, config, date, force=force, listings=None if local is None else local.listings)
        log_workload(spark)
        return outcome


def read_overall_rows(warehouse: str, manifest: Manifest, name: str) -> list[dict[str, Any]]:
    """Read the rows over all queries of one of a run's tables; none if the run does not have it."""
    from jobs.support.published import read_rows

    rows = read_rows(warehouse, manifest, name)
    return [row | {"dt": manifest.dt, "run": manifest.run} for row in rows if row.get("segment", "all") == "all"]


def _render_verdicts(
    output: str, manifest: Manifest, answers: Sequence[CandidateAnswer], compared: list[dict[str, Any]]
) -> str:
    from jobs.support.verdict_formats import render_junit, render_markdown
    from pipelines.comparison.headline import read_shown_metrics

    if output == "junit":
        return render_junit(manifest, answers)
    return render_markdown(manifest, answers, compared, read_shown_metrics(manifest))


def show_run(
    outcome: Outcome,
    warehouse: str,
    rows: tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]],
    *,
    every_reading: bool,
) -> None:
    """Print a run: the verdicts, the tables behind them, and what was read, checked and written."""
    from jobs.support.conclusions import show_answers, show_conclusions, show_means
    from jobs.support.terminal import open_console, print_line
    from pipelines.comparison.answers import answer_comparisons
    from pipelines.comparison.headline import read_shown_metrics
    from pipelines.quality.results import format_results
    from pipelines.warehouse.storage import Storage

    manifest, (means, compared, sensitivity) = outcome.manifest, rows
    metrics = read_shown_metrics(manifest)
    show_answers(answer_comparisons(manifest, compared))
    show_means(manifest, means, compared, metrics)
    show_conclusions(manifest, compared, sensitivity, metrics, every_reading=every_reading)
    console = open_console(wide=True)
    for line in _notes(manifest, warehouse, reused=outcome.reused):
        print_line(console, line)
    for line in format_results(manifest.checks):
        click.echo(line)
    if "docs" in manifest.checks:
        click.echo(f"Data Docs: {Storage(warehouse).path(manifest.checks['docs'])}/index.html")


def require_comparison(manifest: Manifest, answers: Sequence[CandidateAnswer]) -> None:
    """Raise if systems were to be compared and no pair could be; the run is published anyway."""
    if answers and all(answer.outcome == "empty" for answer in answers):
        first = answers[0]
        raise InputError(first.sentence.rstrip("."), where=f"run {manifest.run}", hint=first.advice)


def require_gate(manifest: Manifest) -> None:
    """Raise if the gate does not pass; the run is published anyway. Undecidable is not failed, and says so."""
    failed = [verdict for verdict in manifest.gate if verdict["verdict"] == "fail"]
    stopped = failed or [verdict for verdict in manifest.gate if verdict["verdict"] != "pass"]
    if stopped:
        first = stopped[0]
        what = "the gate fails" if failed else "the gate cannot be decided"
        raise GateError(
            f"{what}, {len(stopped)} of {len(manifest.gate)} conditions: {first['condition']} for "
            f"{first['candidate']}: {first['reason']}",
            where=f"run {manifest.run}",
            hint="the results are published; --no-gate exits with 0",
        )


def _notes(manifest: Manifest, warehouse: str, *, reused: bool) -> list[str]:
    lines = describe_labelling(manifest.labels)
    for name, counts in manifest.inputs.items():
        rejected = sum(counts["rejected"].values())
        if rejected:
            reasons = ", ".join(f"{reason} ({rows:,})" for reason, rows in counts["rejected"].items())
            lines.append(f"! {rejected:,} of {counts['read']:,} rows of {name} are in quarantine: {reasons}")
        if counts.get("ignored"):
            reasons = ", ".join(f"{reason} ({rows:,})" for reason, rows in counts["ignored"].items())
            lines.append(f"! {sum(counts['ignored'].values()):,} rows are not for {name} and are ignored: {reasons}")
        if counts["missing_days"]:
            lines.append(f"! {name} has no data for {', '.join(counts['missing_days'])}")
    written = ", ".join(f"{name} ({format_count(record.rows, 'row')})" for name, record in manifest.tables.items())
    lines.append(f"Run {manifest.run}" + (" was already committed; --force repeats it" if reused else ""))
    lines.append(f"Tables in {warehouse}: {written}")
    return lines


if __name__ == "__main__":
    from jobs.cli import invoke

    sys.exit(invoke(command))
