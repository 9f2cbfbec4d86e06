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
from dataclasses import asdict, dataclass

import click

from jobs.support.labelling import describe_labelling
from jobs.support.options import config_options, date_options, debug_option, log_option, verdict_output_option
from schemas.errors import GateError, InputError
from schemas.printable import format_count

if TYPE_CHECKING:
    from pipelines.comparison.answers import CandidateAnswer
    from pipelines.config.model import Config
    from pipelines.plan import Outcome
    from pipelines.sharing.share import SharedPlaces
    from pipelines.warehouse.runs import Manifest


@click.command("evaluate")
@config_options
@date_options
@click.option("--force", is_flag=True, help="Repeat the work even if it is already committed.")
@click.option("--no-gate", is_flag=True, help="Show the gate's verdicts, but exit with 0 whatever they are.")
@click.option("--all", "every_reading", is_flag=True, help="Print every reading instead of the three that matter most.")
@verdict_output_option
@log_option
@debug_option
def command(
    config: str,
    overrides: tuple[str, ...],
    dates: list[dt.date],
    force: bool,
    no_gate: bool,
    every_reading: bool,
    output: str,
    log: str,
) -> None:
    """Score systems against labels and publish the result.

    \b
    assay evaluate --config conf/demo.yaml --date 2026-11-01
    assay evaluate --config conf/demo.yaml --from 2026-11-01 --to 2026-11-02
    spark-submit jobs/evaluate.py --config conf/demo.yaml --date 2026-11-01
    """
    from pipelines.config.load import load_config

    if len(dates) > 1 and output in ("markdown", "junit"):
        raise click.UsageError(f"--output {output} is for one date")
    loaded = load_config(config, overrides)  # before anything that starts a JVM
    settings = loaded.config
    from jobs.support.backfill import Backfill, show_results
    from jobs.support.runner import DateRunner
    from pipelines.plan import define_evaluation
    from pipelines.sharing.share import start_warm_up

    work = define_evaluation(settings)
    runner = DateRunner("evaluate", loaded, work, dates, force=force, log=log, on_start=lambda: start_warm_up(settings))
    if len(dates) == 1:
        with runner:
            outcome = runner.run(dates[0])
        evaluated = share_evaluation(settings, outcome)
        _show(evaluated, settings.warehouse, output, every_reading=every_reading)
        evaluated.raise_errors(no_gate=no_gate)
        return
    backfill = Backfill(dates)
    try:
        with runner:
            backfill.run(runner.run, lambda done: share_evaluation(settings, done).raise_errors(no_gate=no_gate))
    finally:
        show_results(backfill, output)


@dataclass(frozen=True)
class SharedEvaluation:
    """A run with its rows over all queries, its answers, and where it can be seen."""

    outcome: Outcome
    headline: list[dict[str, Any]]
    compared: list[dict[str, Any]]
    sensitivity: list[dict[str, Any]]
    answers: Sequence[CandidateAnswer]
    shared: SharedPlaces

    def raise_errors(self, *, no_gate: bool) -> None:
        """Raise what the command has to end with."""
        if not no_gate:
            require_gate(self.outcome.manifest)
        require_comparison(self.outcome.manifest, self.answers)
        self.shared.raise_error()


def share_evaluation(config: Config, outcome: Outcome) -> SharedEvaluation:
    """Write the report, export and track a committed run, and read what is printed of it."""
    from pipelines.comparison.answers import answer_comparisons
    from pipelines.sharing.share import share_run

    names = ("segment_metrics", "comparisons", "sensitivity")
    headline, compared, sensitivity = (read_overall_rows(config.warehouse, outcome.manifest, name) for name in names)
    shared = share_run(config, outcome.manifest, reused=outcome.reused)
    answers = answer_comparisons(outcome.manifest, compared)
    return SharedEvaluation(outcome, headline, compared, sensitivity, answers, shared)


def _show(evaluated: SharedEvaluation, warehouse: str, output: str, *, every_reading: bool) -> None:
    """Print a run in the chosen format."""
    manifest = evaluated.outcome.manifest
    if output == "json":
        facts = {
            "run": manifest.run,
            "found_done": evaluated.outcome.reused,
            "metrics": evaluated.headline,
            "verdicts": [asdict(answer) for answer in evaluated.answers],
            "comparisons": evaluated.compared,
            "gate": manifest.gate,
            "readings": manifest.readings,
            "checks": manifest.checks,
            "sensitivity": evaluated.sensitivity,
            "labels": manifest.labels,
            "shared": evaluated.shared.places,
        }
        click.echo(json.dumps(facts, default=str))
    elif output in ("markdown", "junit"):
        click.echo(_render_verdicts(output, manifest, evaluated.answers, evaluated.compared))
    else:
        rows = (evaluated.headline, evaluated.compared, evaluated.sensitivity)
        show_run(evaluated.outcome, warehouse, rows, every_reading=every_reading)
        for name, place in evaluated.shared.places.items():
            click.echo(f"{name.capitalize().replace('Mlflow', 'MLflow')}: {place}")


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
    from jobs.support.terminal import echo_line, open_console, print_line
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
        echo_line(line)
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
        what = "the gate fails" if failed else "the gate is undecidable"
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
    from jobs.cli import run_process

    run_process(command)
